"""Local times to UTC, also in hours that occur twice or not at all."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal
from zoneinfo import ZoneInfo

import numpy as np

from streamridge.arrays import Mask
from streamridge.series.clock import Times

Fold = Literal["infer", "first", "second"]


def to_utc(times: Times, zone: ZoneInfo, fold: Fold = "infer") -> tuple[Times, Mask]:
    """Return local times in UTC, and which of them exist.

    Parameters
    ----------
    times
        (n,), in their written order.
    zone
        Their time zone.
    fold
        Which of the two a time means that occurs twice, when clocks go back: "infer" takes it as
        the first, and as the second if it has been seen before.

    Examples
    --------
    >>> times = np.array(["2023-10-29T02:30", "2023-10-29T02:30", "2023-03-26T02:30"], "M8[us]")
    >>> to_utc(times, ZoneInfo("Europe/Berlin"))[0].astype("M8[m]")[:2]
    array(['2023-10-29T00:30', '2023-10-29T01:30'], dtype='datetime64[m]')
    >>> to_utc(times, ZoneInfo("Europe/Berlin"))[1]
    array([ True,  True, False])
    """
    seen: set[datetime] = set()
    utc, exists = [], []
    for local in times.astype("M8[us]").tolist():
        candidates = moments(local, zone)
        again = fold == "second" or (fold == "infer" and local in seen)
        if len(candidates) > 1:
            seen.add(local)
        utc.append(candidates[-1 if again else 0] if candidates else local)
        exists.append(bool(candidates))
    return np.array(utc, dtype="M8[us]"), np.array(exists, dtype=bool)


def moments(local: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """Return the moments of a local time in UTC: one, two when clocks go back, or none.

    Examples
    --------
    >>> berlin = ZoneInfo("Europe/Berlin")
    >>> [str(moment) for moment in moments(datetime(2023, 10, 29, 2, 30), berlin)]
    ['2023-10-29 00:30:00', '2023-10-29 01:30:00']
    >>> moments(datetime(2023, 3, 26, 2, 30), berlin)
    ()
    """
    if not 1 < local.year < 9999:  # an offset could lead outside the calendar
        return ()
    first, second = (
        local.replace(tzinfo=zone, fold=fold).astimezone(UTC).replace(tzinfo=None)
        for fold in (0, 1)
    )
    if first == second:
        return (first,)
    return (first, second) if first < second else ()
