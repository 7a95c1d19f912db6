"""Figures of arrays: each is drawn on an Axes of matplotlib."""
