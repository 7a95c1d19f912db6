"""Requests that web frameworks often handle wrongly, with the right results.

A result is "taken", the code of the refused row (a 422), or "all: " and the code of the request.
"""

from __future__ import annotations

from tests.support.service.request_bodies import JSON, NDJSON, reading

REQUESTS = [
    ("NaN", JSON, reading(value="NaN"), "sr-not-a-number"),
    ("Infinity", JSON, b"[" + reading(value="Infinity") + b"]", "sr-not-a-number"),
    ("-Infinity", NDJSON, reading(value="-Infinity"), "sr-not-a-number"),
    ("1e400", JSON, reading(value="1e400"), "sr-not-a-number"),
    ("-1e400", NDJSON, reading(value="-1e400"), "sr-not-a-number"),
    ("3000 digits", JSON, b"[" + reading(value="9" * 3000) + b"]", "sr-not-a-number"),
    ("number in quotes", JSON, reading(value='"5"'), "sr-not-a-number"),
    ("true", NDJSON, reading(value="true"), "sr-not-a-number"),
    ("array as value", JSON, reading(value="[5]"), "sr-not-a-number"),
    ("null", JSON, reading(value="null"), "taken"),
    ("-0", JSON, reading(value="-0"), "taken"),
    ("1e308", JSON, reading(value="1e308"), "sr-out-of-range"),
    ("lone surrogate", JSON, reading(sensor=r'"\ud800"'), "sr-bad-name"),
    ("NUL in a name", JSON, reading(sensor=r'"a\u0000"'), "sr-bad-name"),
    ("line break after a name", JSON, reading(sensor=r'"a\n"'), "sr-bad-name"),
    ("script as name", JSON, reading(sensor='"<script>alert(1)</script>"'), "sr-bad-name"),
    ("65 characters", NDJSON, reading(sensor=f'"{"a" * 65}"'), "sr-bad-name"),
    ("broken UTF-8", JSON, reading(sensor='"a?"').replace(b"?", b"\xff"), "all: sr-unreadable"),
    ("100,000 brackets", JSON, b"[" * 100_000, "all: sr-unreadable"),
    ("not JSON", JSON, b"sensor=a&value=5", "all: sr-unreadable"),
    ("time without offset", JSON, reading(time='"2026-06-13T08:15:00"'), "sr-no-offset"),
    ("number as time", JSON, reading(time="1781338500"), "sr-bad-time"),
    ("field twice", JSON, reading(value='1, "value": 2'), "sr-bad-row"),
    ("field too many", JSON, reading(value='1, "unit": "veh/h"'), "sr-bad-row"),
]
