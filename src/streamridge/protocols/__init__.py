"""Protocols that drive a learner over a stream."""
