"""Features of a sensor: rows for models, computed from its past."""
