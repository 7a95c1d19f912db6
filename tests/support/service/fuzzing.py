"""Hooks of the fuzzer: encoding of NDJSON, valid times, and known sensors."""

import json
from datetime import datetime

import schemathesis
from hypothesis import strategies as st


@schemathesis.serializer("application/x-ndjson")
def lines_of_json(context, value):
    return value.encode() if isinstance(value, str) else json.dumps(value, default=str).encode()


# The service accepts these years, and no leap seconds.
schemathesis.openapi.format(
    "date-time",
    st.datetimes(datetime(2020, 1, 1), datetime(2027, 1, 1)).map(
        lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    ),
)


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    """Replace every second name by the name of a known sensor."""
    if path_parameters and len(str(path_parameters.get("sensor", "x"))) % 2 == 0:
        return {**path_parameters, "sensor": "north"}
    return path_parameters
