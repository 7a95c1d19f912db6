"""Section 6.2 of the paper: 13 detectors by every way of tuning."""
