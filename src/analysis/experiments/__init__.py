"""Measuring: what to send, in which order, and what is recorded."""
