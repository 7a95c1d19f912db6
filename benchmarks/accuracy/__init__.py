"""The parts of `bench_accuracy.py`: streams, our methods, rivals, ratios and tables."""
