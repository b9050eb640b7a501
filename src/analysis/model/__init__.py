"""The science: pure functions on numbers and arrays. No files, no network, no plots."""
