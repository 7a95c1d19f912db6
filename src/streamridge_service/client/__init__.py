"""Sending readings to a service."""
