"""The parts of `bench_accuracy.py`: streams, rivals, and the table of their figures."""
