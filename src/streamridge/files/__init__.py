"""Readings out of files and frames, and tables into files."""
