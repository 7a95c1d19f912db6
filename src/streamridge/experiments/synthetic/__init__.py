"""Section 6.1 of the paper: two kernels on synthetic series."""
