"""Demo, export and self-check."""
