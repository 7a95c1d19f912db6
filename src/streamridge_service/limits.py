"""Limits of a request, shared by the server and the client."""

from __future__ import annotations

from streamridge import LARGEST_VALUE

# Sensor names: at most 64 characters.
SENSOR_NAME = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"
NAME_RULE = "up to 64 letters, digits and . _ : - that begin with a letter or digit"
# The largest absolute value of a reading, the same as the library's.
LARGEST = LARGEST_VALUE
# Limits of one request: rows, and bytes before and after decompression.
MOST_ROWS, MOST_BYTES = 200_000, 32_000_000
# An answer describes at most this many refused rows; all of them are counted.
MOST_REFUSALS = 100
