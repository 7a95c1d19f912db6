"""Methods that turn past scores into intervals, for `bench_intervals.py`."""
