"""What the data of a case say: one module a chapter, from records and model to plain results."""
