"""Rows for models, made out of a sensor's past."""
