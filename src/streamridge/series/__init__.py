"""A sensor's readings on a regular grid: clocks, zones, gaps."""
