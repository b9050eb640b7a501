"""One offline page for each command that reads logs: matplotlib and Jinja, no Jupyter."""
