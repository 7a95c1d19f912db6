"""Durable storage of the service: one interface, implemented on SQLite and on PostgreSQL."""
