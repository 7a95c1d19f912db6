"""Figures of merit: how large errors are, and when."""
