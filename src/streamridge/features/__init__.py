"""Rows for models, made from the past of a sensor."""
