"""The command `streamridge`."""
