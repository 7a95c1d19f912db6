"""A forecast as users get it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from streamridge.arrays import Matrix, SameContent, Vector
from streamridge.files.framing import framed
from streamridge.forecaster.levels import Levels, band_columns
from streamridge.series.clock import Times
from streamridge.series.writing import AS_IS, Writing, time_columns

Source = Literal["model", "seasonal", "last", "none"]


@dataclass(frozen=True, eq=False)
class Forecast(SameContent):
    """A forecast of the next steps, with one entry per horizon.

    Parameters
    ----------
    time
        (H,), the times of the steps, in UTC where readings have an offset or the sensor a zone;
        whole numbers for an integer index. `stamps` has them as readings had theirs. Before the
        first reading they are not known: NaT, or NaN for an index.
    value
        (H,), the forecast.
    lower, upper
        (H,), the band that should hold the actual value as often as its level says. With several
        levels (H, L), a column per level; a higher level's band contains that of a lower one.
    source
        "model", or what stands in for it: "seasonal", the value a season ago, or "last", the last
        reading. The better of late stands in before there is a model, and when the sensor has been
        silent for the shortest season (or for eight steps, if they are of a day or longer). Where
        experts are mixed, it is what has most of the weight. After eight steps of silence that is
        never "last". "none" before the first reading, when the numbers are NaN.
    levels
        (L,), the levels of the bands, in the order they were asked for.
    writing
        How the times of the readings were written; `stamps` and `frame` write theirs the same way.
    """

    time: Times
    value: Vector
    lower: Vector | Matrix
    upper: Vector | Matrix
    source: Source
    levels: Levels
    writing: Writing = AS_IS

    def __len__(self) -> int:
        return len(self.value)

    @property
    def stamps(self) -> list[Any]:
        """Return the times as the readings had theirs: in the same zone, offset or local time.

        Examples
        --------
        >>> noon = np.array(["2023-06-13T12:00"], "M8[us]")
        >>> one = np.ones(1)
        >>> berlin = Writing(zoned=True, zone="Europe/Berlin")
        >>> print(*Forecast(noon, one, one, one, "model", (0.9,), berlin).stamps)
        2023-06-13 14:00:00+02:00
        """
        return self.writing.stamps(self.time)

    def frame(self, backend: str | None = None) -> Any:
        """Return the forecast as a frame of pandas, polars or pyarrow, with a row for each step.

        Its columns are "time", written as those of the readings were, "horizon", "value", and the
        ends of the bands; see `Run.columns`.
        """
        columns = {
            **time_columns(self.time, self.writing),
            "horizon": 1 + np.arange(len(self)),
            "value": self.value,
            **band_columns(self.levels, self.lower, self.upper),
        }
        return framed(columns, backend)

    @classmethod
    def banded(
        cls,
        time: Times,
        value: Vector,
        bands: tuple[Matrix, Matrix],
        *,
        source: Source,
        levels: Levels,
        writing: Writing = AS_IS,
    ) -> Forecast:
        """Return a forecast with the ends of its bands, (H, L) each; one level has no axis."""
        lower, upper = (ends[:, 0] if len(levels) == 1 else ends for ends in bands)
        return cls(time, value, lower, upper, source, levels, writing)

    @classmethod
    def none(cls, horizon: int, levels: Levels, *, indexed: bool = False) -> Forecast:
        """Return the forecast before the first reading, when nothing is known."""
        unknown = np.full((horizon, len(levels)), np.nan)
        times = unknown[:, 0] if indexed else np.full(horizon, "NaT", "M8[us]")
        bands = (unknown, unknown)
        return cls.banded(times, unknown[:, 0], bands, source="none", levels=levels)
