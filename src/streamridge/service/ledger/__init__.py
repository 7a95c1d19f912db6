"""Where the truth is kept: one contract, and a ledger each for SQLite and PostgreSQL."""
