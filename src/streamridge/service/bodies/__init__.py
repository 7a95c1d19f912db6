"""From the bytes of a request to rows: JSON, lines of JSON, CSV, Parquet, line protocol."""
