"""From findings to what people read: figures, values, notebooks run, pages, citations."""
