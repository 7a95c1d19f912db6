"""Section 5 of the paper: local regret, measured."""
