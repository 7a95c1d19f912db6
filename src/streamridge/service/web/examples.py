"""Examples of what is sent and answered, for the document of the interface."""

from __future__ import annotations

from typing import Any

Example = dict[str, Any]

TIME, NEXT = "2026-06-13T08:15:00Z", "2026-06-13T08:30:00Z"
READING: Example = {"sensor": "A2-35.1", "time": TIME, "value": 412}
READINGS = [READING, {"sensor": "A2-41.3", "time": TIME, "value": None}]
NDJSON_TEXT = (
    '{"sensor": "A2-35.1", "time": "2026-06-13T08:15:00Z", "value": 412}\n'
    '{"sensor": "A2-41.3", "time": "2026-06-13T08:15:00Z", "value": null}\n'
)
CSV_TEXT = "sensor,time,value\nA2-35.1,2026-06-13T08:15:00Z,412\nA2-41.3,2026-06-13T08:15:00Z,\n"
LINES_TEXT = "flow,road=A2,lane=1 cars=412i 1781338500000000000\n"
COUNTS: Example = {
    "accepted": 2,
    "duplicate": 0,
    "late": 0,
    "held": 0,
    "replaced": 0,
    "implausible": 0,
    "refused": 0,
}
PROBLEM: Example = {
    "type": "/problems#sr-no-offset",
    "code": "sr-no-offset",
    "title": "A time has no offset from UTC",
    "status": 422,
    "detail": "1 of 2 rows was refused. Line 2: time must end with Z or an offset.",
    "remedy": "Add Z or an offset such as +02:00 to every time.",
    "retry": False,
}
DECLARATION: Example = {
    "label": "A2, kilometre 35.1, towards Utrecht",
    "group": "A2",
    "position": [52.09, 5.04],
    "unit": "veh/15min",
    "zone": "Europe/Amsterdam",
    "bounds": [0, 3000],
}
STEP: Example = {"time": NEXT, "lead": 1, "value": 428.1, "lower": 371.5, "upper": 484.9}
ITEM: Example = {
    "id": "A2-35.1",
    "label": "A2, kilometre 35.1, towards Utrecht",
    "group": "A2",
    "state": "good",
    "reason": "",
    "newest": TIME,
    "value": 412.0,
    "unit": "veh/15min",
    "zone": "Europe/Amsterdam",
    "position": [52.09, 5.04],
    "error": 21.4,
    "error_ratio": 1.08,
    "outside": 0.07,
    "trend": "flat",
    "forecast": {
        "time": NEXT, "value": 428.1, "lower": 371.5, "upper": 484.9, "source": "model",
    },
}  # fmt: skip
DETAIL: Example = {
    **ITEM,
    "declared": DECLARATION,
    "archived": None,
    "fit": {"at": "2026-06-12T18:30:00Z", "next": "2026-06-13T18:30:00Z", "seq": 184_233},
    "experts": {"model": 0.83, "week": 0.11, "day": 0.04, "last": 0.02},
    "hyperparameters": {"regularization": 2.31, "drifting.rate": 0.0003},
    "frozen": ["drifting.rate"],
    "at_bound": {},
}
FORECAST: Example = {
    "sensor": "A2-35.1", "seq": 184_901, "source": "model", "reason": None, "items": [STEP],
}  # fmt: skip
FORECAST_ROW: Example = {
    "sensor": "A2-35.1",
    "label": "A2, kilometre 35.1, towards Utrecht",
    "seq": 184_901,
    "source": "model",
    "reason": None,
    **STEP,
}
HISTORY: Example = {
    "sensor": "A2-35.1",
    "lead": 1,
    "step_seconds": 900,
    "items": [
        {
            "time": TIME,
            "actual": 412.0,
            "status": "good",
            "forecast": 405.2,
            "lower": 349.0,
            "upper": 461.7,
            "source": "model",
            "issued_at_seq": 184_800,
        }
    ],
}
EVENT: Example = {
    "id": 17,
    "time": TIME,
    "kind": "stale",
    "sensor": "A2-41.3",
    "reason": "no reading for 75 minutes",
}
SUMMARY: Example = {
    "state": "live",
    "reasons": [],
    "now": "2026-06-13T08:16:12Z",
    "version": "0.1.0",
    "step_seconds": 900,
    "horizon": 1,
    "level": 0.9,
    "sensors": {
        "good": 12, "stale": 1, "silent": 0, "constant": 0, "zero": 0, "implausible": 0,
        "degraded": 0, "rebuilt": 0, "new": 3,
    },
    "total": 16,
    "newest": TIME,
    "newest_age_seconds": 72.0,
    "last_step": {"time": TIME, "received": 15, "expected": 16},
    "refused_last_hour": 0,
    "days_left": 812.0,
    "clock_warning": None,
    "zone": "UTC",
    "error": {"now": 0.93},
}  # fmt: skip
