"""Findings as tidy tables: what is shown, what is drawn, and what a figure's CSV holds."""
