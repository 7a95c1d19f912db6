"""The forecast that `Forecaster.predict` returns, and the levels of its bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, SameContent, Vector, require_finite
from streamridge.errors import InvalidInputError, html_table, shown
from streamridge.files.frames import make_frame
from streamridge.metrics import percent
from streamridge.plots.axes import drawable, new_figure
from streamridge.plots.figures import plot_next_steps
from streamridge.series.clock import AnyClock
from streamridge.series.time_format import NAIVE, TimeFormat, time_columns
from streamridge.series.times import Times

# One level, or several.
Level: TypeAlias = float | Sequence[float]
Levels: TypeAlias = tuple[float, ...]

Part = TypeVar("Part")

# The level of the band that readings are judged by; it is always learned.
JUDGED = 0.9
# A table of more rows shows the first and the last rows.
MOST_ROWS, SHOWN_ROWS = 24, 8
# A figure shows at least this number of readings before the forecast.
LEAST_RECENT = 48
# The largest share below one.
LARGEST = float(np.nextafter(1.0, 0.0))


def require_levels(level: Level) -> Levels:
    """Return one level or several as a tuple; raise unless they are different shares.

    Examples
    --------
    >>> require_levels(0.9), require_levels([0.8, 0.95])
    ((0.9,), (0.8, 0.95))
    >>> require_levels(90)
    Traceback (most recent call last):
    streamridge.errors.InvalidInputError: level must lie between 0 and 1, got 90.0. \
Write 0.9 for 90 %.
    """
    given = require_finite("level", level)
    shares = given.ravel().tolist()
    if given.ndim > 1 or len(set(shares)) < max(1, len(shares)):
        raise InvalidInputError(
            f"level must be one number, or several that differ, got {shown(level)}."
        )
    for share in shares:
        _require_share(share)
    return tuple(shares)


def one_or_all(levels: Levels) -> float | Levels:
    """Return a single level as a number, and several levels as a tuple."""
    return levels[0] if len(levels) == 1 else levels


def gaussian_quantile(level: float) -> float:
    """Return half the width of the central band of a Gaussian, in standard deviations.

    Examples
    --------
    >>> gaussian_quantile(0.95)
    1.9599639
    """
    return NormalDist().inv_cdf(min((1 + level) / 2, LARGEST))


def in_percent(levels: Levels) -> str:
    """Return levels in words, in the order given.

    Examples
    --------
    >>> in_percent((0.9,)), in_percent((0.5, 0.8, 0.975))
    ('90%', '50%, 80% and 97.5%')
    """
    *others, last = (f"{percent(level)}%" for level in levels)
    return f"{', '.join(others)} and {last}" if others else last


def band_words(levels: Levels) -> str:
    """Return the name of the intervals of a plot.

    Examples
    --------
    >>> band_words((0.9,)), band_words((0.8, 0.95))
    ('the 90% interval', 'the 80% and 95% intervals')
    """
    return f"the {in_percent(levels)} interval{'s' if len(levels) > 1 else ''}"


def named(name: str, levels: Levels, parts: Sequence[Part]) -> dict[str, Part]:
    """Return values by name, one per level; a single level uses the bare name.

    Examples
    --------
    >>> named("lower", (0.9,), [1.0]), named("lower", (0.8, 0.975), [2.0, 1.0])
    ({'lower': 1.0}, {'lower_80': 2.0, 'lower_97.5': 1.0})
    """
    if len(levels) == 1:
        return {name: parts[0]}
    return {f"{name}_{percent(level)}": part for level, part in zip(levels, parts, strict=True)}


def by_level(ends: NDArray[np.float64], levels: Levels) -> list[Vector]:
    """Return the ends of bands level by level; several levels are the last axis."""
    return [ends] if len(levels) == 1 else list(np.moveaxis(ends, -1, 0))


def band_columns(
    levels: Levels, lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return the ends of bands by name, level by level: "lower_80", "upper_80", "lower_95", ...

    Examples
    --------
    >>> list(band_columns((0.8, 0.95), np.zeros((1, 2)), np.ones((1, 2))))
    ['lower_80', 'upper_80', 'lower_95', 'upper_95']
    """
    pairs = zip(by_level(lower, levels), by_level(upper, levels), strict=True)
    return {
        side + name: ends
        for name, pair in named("", levels, list(pairs)).items()
        for side, ends in zip(("lower", "upper"), pair, strict=True)
    }


def _require_share(level: float) -> None:
    if not 0 < level < 1:
        hint = f" Write {level / 100:g} for {level:g} %." if 10 <= level < 100 else ""
        raise InvalidInputError(f"level must lie between 0 and 1, got {level}.{hint}")


Source = Literal["model", "seasonal", "last", "none"]


@dataclass(frozen=True)
class RecentReadings:
    """The readings before a forecast, for figures."""

    clock: AnyClock
    first: int  # the step of the first value
    values: Vector  # (n,), NaN without a reading

    @property
    def times(self) -> Times:
        """Return the times of the values, shape (n,)."""
        return self.clock.times(self.first + np.arange(len(self.values)))


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(SameContent):
    """A forecast of the next steps, with one entry per horizon.

    Parameters
    ----------
    time
        (H,), the times of the steps, in UTC where readings have an offset or the sensor a zone;
        whole numbers for an integer index. `stamps` has them in the format of the readings.
        Unknown before the first reading: NaT, or NaN for an index.
    value
        (H,), the forecast.
    lower, upper
        (H,), the ends of the band, which should contain the actual value as often as its level
        says. With several levels (H, L), a column per level; bands of higher levels are wider.
    source
        The kind of forecast with most of the weight: "model"; "seasonal", the value one season
        ago; or "last", the last reading. Before the first fit, and after a silence of the shortest
        season (eight steps if steps are a day or longer), it is the better naive forecast. It is
        never "last" after eight steps of silence. "none" before the first reading, when all numbers
        are NaN.
    levels
        (L,), the levels of the bands, in the requested order.
    time_format
        The format of the readings' times, which `stamps` and `frame` use too.
    sensor
        The name of the sensor.
    recent
        The latest readings, which `plot` draws before the forecast.
    """

    time: Times
    value: Vector
    lower: Vector | Matrix
    upper: Vector | Matrix
    source: Source
    levels: Levels
    time_format: TimeFormat = NAIVE
    sensor: str | None = field(default=None, compare=False)
    recent: RecentReadings | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        words = {"sensor": repr(self.sensor), "source": repr(self.source)}
        if len(self) == 1:
            numbers = {"value": self.value, **band_columns(self.levels, self.lower, self.upper)}
            words |= {"time": repr(self._texts[0])}
            words |= {name: f"{column[0]:.4g}" for name, column in numbers.items()}
        else:
            first, last = repr(self._texts[0]), repr(self._texts[-1])
            words |= {"horizon": str(len(self)), "first": first, "last": last}
        return f"Forecast({', '.join(f'{name}={text}' for name, text in words.items())})"

    def _repr_html_(self) -> str:
        ends = band_columns(self.levels, self.lower, self.upper)
        numbers = {"value": self.value, **ends}
        rows = [
            [time, *(f"{column[at]:.6g}" for column in numbers.values())]
            for at, time in enumerate(self._texts)
        ]
        if len(rows) > MOST_ROWS:
            rows[SHOWN_ROWS:-SHOWN_ROWS] = [["..."] * len(rows[0])]
        return html_table(["time", *numbers], rows)

    @property
    def _texts(self) -> list[str]:
        return self.time_format.texts(self.time)

    def plot(self, unit: str = "") -> Any:
        """Return a figure of the latest readings and of the forecast with its intervals."""
        figure = new_figure(1)
        self.draw(figure.axes[0], unit)
        return figure

    def draw(self, axes: Any, unit: str = "") -> Any:
        """Draw the latest readings and the forecast with its intervals on axes of matplotlib."""
        past, local = self.recent, self.time_format.local
        recent = (self.time[:0], self.value[:0]) if past is None else (past.times, past.values)
        shown = slice(-max(LEAST_RECENT, 2 * len(self)), None)
        plot_next_steps(
            axes,
            (local(recent[0][shown]), recent[1][shown]),
            local(self.time),
            *(self.value, self.lower, self.upper),
            unit=unit,
            levels=self.levels,
        )
        name = "" if self.sensor is None else f"{drawable(self.sensor)}: "
        steps = "the next step" if len(self) == 1 else f"the next {len(self)} steps"
        axes.set(title=f"{name}{steps}, with {band_words(self.levels)}")
        return axes

    def __len__(self) -> int:
        return len(self.value)

    def first(self, steps: int) -> Forecast:
        """Return the forecast of the first steps."""
        names = ("time", "value", "lower", "upper")
        return replace(self, **{name: getattr(self, name)[:steps] for name in names})

    @property
    def stamps(self) -> list[Any]:
        """Return the times in the format of the readings: the same zone, offset or local time.

        Examples
        --------
        >>> noon = np.array(["2023-06-13T12:00"], "M8[us]")
        >>> one = np.ones(1)
        >>> berlin = TimeFormat(zoned=True, zone="Europe/Berlin")
        >>> print(*Forecast(noon, one, one, one, "model", (0.9,), berlin).stamps)
        2023-06-13 14:00:00+02:00
        """
        return self.time_format.datetimes(self.time)

    def frame(self, backend: str | None = None) -> Any:
        """Return the forecast as a frame of pandas, polars or pyarrow, with a row for each step.

        Its columns are "time" in the format of the readings, "horizon", "value", and the ends of
        the bands; see `Run.columns`.
        """
        columns = {
            **time_columns(self.time, self.time_format),
            "horizon": 1 + np.arange(len(self)),
            "value": self.value,
            **band_columns(self.levels, self.lower, self.upper),
        }
        return make_frame(columns, backend)

    @classmethod
    def none(cls, horizon: int, levels: Levels, *, indexed: bool = False) -> Forecast:
        """Return the forecast before the first reading, whose numbers are NaN."""
        unknown = np.full((horizon, len(levels)), np.nan)
        times = unknown[:, 0] if indexed else np.full(horizon, "NaT", "M8[us]")
        ends = unknown[:, 0] if len(levels) == 1 else unknown
        return cls(times, unknown[:, 0], ends, ends, "none", levels)
