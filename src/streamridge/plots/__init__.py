"""Figures: arrays drawn on an Axes."""
