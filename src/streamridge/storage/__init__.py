"""What crosses the disk: the state of a forecaster in one file."""
