"""The one way from files, frames and series to the series of each sensor, loaded when needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np

from streamridge.errors import InvalidInputError, listed
from streamridge.files.reading import stored_readings
from streamridge.files.store import Store
from streamridge.runs.selection import Selection
from streamridge.series.clock import Length
from streamridge.series.readings import Readings
from streamridge.series.series import Series
from streamridge.texts import option, visible

DIGEST_BYTES = 12


@dataclass(frozen=True)
class Source:
    """A sensor's series that is loaded when it is needed.

    Parameters
    ----------
    sensor
        Its name.
    step, steps
        The time between readings, and how many steps there are.
    digest
        A short text that stands for the series.
    load
        Returns the series.
    zoned
        Whether its times have an offset from UTC.
    """

    sensor: str
    step: Length
    steps: int
    digest: str
    load: Callable[[], Series]
    zoned: bool = False

    def __len__(self) -> int:
        return self.steps

    @classmethod
    def of(cls, series: Series, load: Callable[[], Series] | None = None) -> Source:
        """Return the source of a series: one that holds it, unless it can be loaded again."""
        again = load or (lambda: series)
        zoned = series.writing.zoned
        return cls(series.sensor, series.clock.step, len(series), _digest(series), again, zoned)


@dataclass(frozen=True)
class LeftOut:
    """A sensor that is not forecast, and why."""

    sensor: str
    reason: str

    def __str__(self) -> str:
        return visible(f"{self.sensor}: {self.reason}, left out")


@dataclass(frozen=True)
class Sources:
    """The sensors that were found, those without any value, and what was decided in reading."""

    found: tuple[Source, ...]
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()


@contextmanager
def opened_sources(
    given: Any, selection: Selection, seen: Callable[[Series], None] | None = None
) -> Iterator[Sources]:
    """Give the sources of all sensors, each looked at once; they can be loaded within.

    Parameters
    ----------
    given
        A `Series` or several, a frame or series of pandas, polars or pyarrow, a path, "-" for
        standard input, or a list of paths.
    selection
        What to take of it.
    seen
        Called with each series while it is looked at.
    """
    tell = seen or (lambda series: None)
    regular = _regular(given)
    if regular is None:
        with _stored(given, selection) as store:
            yield _looked_at(store, selection, tell)
        return
    chosen = selection.of_series(regular)
    _require_distinct([each.sensor for each in chosen])
    for each in chosen:
        tell(each)
    yield Sources(tuple(map(Source.of, chosen)))


def one_series(given: Any, selection: Selection) -> Series:
    """Return the series of a source that has one sensor, or of which one is selected."""
    regular = _regular(given)
    if regular is None:
        return selection.of_readings(one_sensor(given, selection, _only))
    chosen = selection.of_series(regular)
    _only([each.sensor for each in chosen])
    return chosen[0]


def one_sensor(
    given: Any, selection: Selection, choose: Callable[[Sequence[str]], str]
) -> Readings:
    """Return the readings of one sensor of a source, chosen among the names of all."""
    with _stored(given, selection) as store:
        return store.readings(choose(store.names))


def _stored(given: Any, selection: Selection) -> AbstractContextManager[Store]:
    """Return the readings of a source, to be taken sensor by sensor while it is open."""
    return stored_readings(
        given,
        sensors=selection.sensors,
        layout=selection.layout,
        extras=selection.extras,
        gap=selection.gap,
        dialect=selection.dialect,
    )


def _digest(series: Series) -> str:
    """Return a short text that stands for a series: its times as written, and every value."""
    content = blake2b(digest_size=DIGEST_BYTES)
    content.update(np.ascontiguousarray(series.values).tobytes())
    content.update(f"{series.times[0]} {series.clock.step}".encode())
    if series.clock.zone is not None:
        content.update(series.clock.zone.key.encode())
    if series.writing.zoned:
        content.update(repr(series.writing).encode())
    if series.known_at is not None:
        content.update(series.known_at.tobytes())
    for name, column in series.extras.items():
        content.update(name.encode())
        content.update(np.ascontiguousarray(column).tobytes())
    return content.hexdigest()


def _looked_at(store: Store, selection: Selection, tell: Callable[[Series], None]) -> Sources:
    found, left_out = [], []
    for name in store.names:
        readings = store.readings(name)
        if np.isnan(readings.values).all():
            left_out.append(LeftOut(name, "no values"))
            continue
        series = selection.of_readings(readings)
        tell(series)
        found.append(Source.of(series, partial(_load, store, name, selection)))
    if not found:
        raise InvalidInputError(
            f"at least one sensor must have values, got none in {listed(store.names)}."
        )
    return Sources(tuple(found), tuple(left_out), store.notes)


def _load(store: Store, name: str, selection: Selection) -> Series:
    return selection.of_readings(store.readings(name))


def _regular(given: Any) -> Sequence[Series] | None:
    """Return the series that were given; None stands for what has to be read first."""
    every = given if isinstance(given, list | tuple) else [given]
    return every if all(isinstance(each, Series) for each in every) else None


def _require_distinct(names: Sequence[str]) -> None:
    """Raise if two series have the same name: their runs could not be told apart."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InvalidInputError(
            f"series must have distinct names, got {listed(repeated)} more than once."
        )


def _only(names: Sequence[str]) -> str:
    """Return the only name; raise if there are several."""
    if len(names) > 1:
        raise InvalidInputError(
            f"sensor must be one of {listed(names)}, got none. Pass {option('sensor')}."
        )
    return names[0]
