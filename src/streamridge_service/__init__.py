"""The live service: readings in, forecasts out, learned while it serves."""
