"""Why is my speculative decoding this fast, and what will it do next?

Layers, each importing only those below it: ``cli``, ``report``, ``findings``, ``records``,
``model``. ``model`` is the science and is the part to read first.
"""
