"""Forecasters driven over series: one, or many."""
