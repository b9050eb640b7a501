"""Plots: each takes an axis and a table, and computes nothing."""
