"""Models that plug into Algorithm 2."""
