"""Verification of a ledger: sensors are replayed from their logs and compared."""
