"""The ``analysis`` command: parse, call, print."""
