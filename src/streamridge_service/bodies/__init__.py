"""From the bytes of a request to rows: JSON, NDJSON, CSV and line protocol."""
