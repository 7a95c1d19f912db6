"""Section 6.2 of the paper: 13 traffic detectors, forecast with every way of tuning."""
