"""From series of readings to the rows that models learn from."""
