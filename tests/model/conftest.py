"""Hypothesis draws the same examples everywhere, and no slow machine fails for its slowness."""

from hypothesis import settings

settings.register_profile("reproducible", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("reproducible")
