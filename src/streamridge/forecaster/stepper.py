"""The inner loop of a forecaster: at each step, forecast, take a reading or a gap, and learn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamridge.arrays import Matrix, Vector
from streamridge.errors import FitError
from streamridge.features.base import input_at
from streamridge.forecaster.calibration import Calibration, Made
from streamridge.forecaster.correction import ErrorCorrection
from streamridge.forecaster.experts import Experts
from streamridge.forecaster.forecast import Source
from streamridge.forecaster.levels import JUDGED, Levels
from streamridge.forecaster.panel import Heard, Panel
from streamridge.forecaster.recollection import Recollection
from streamridge.forecaster.self_tuning import Event, SelfTuningModel
from streamridge.forecaster.sensor import Sensor
from streamridge.forecaster.settings import Settings
from streamridge.learners.companion import NAME as COMPANION
from streamridge.learners.costs import Costs
from streamridge.learners.state import joined, part
from streamridge.learners.workspace import Workspace
from streamridge.models.base import WindowLoss
from streamridge.samples import Inputs
from streamridge.series.seasons import season_name
from streamridge.series.series import Series
from streamridge.series.writing import AS_IS

# A first fit needs at least this many rows.
LEAST_ROWS = 12
# A fit to a quiet time expects errors of at least this share of those of late.
LEAST_SHARE = 0.15
# Names of the experts that are fitted, and of the one that repeats the last reading.
MODELS, LAST = ("model", COMPANION), "last"


@dataclass(frozen=True)
class Ahead:
    """The next forecast, with all that is needed to learn from it."""

    values: Vector
    source: Source
    made: Made | None = None  # the model's part, if there is a model
    heard: Heard | None = None  # what all experts said, if they are mixed


class Stepper:
    """A walk along a sensor, with its past, the model that learns from it, and the model's errors.

    Parameters
    ----------
    settings
        Settings of the forecaster. Readings are checked before they come here.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.sensor = Sensor(settings)
        self.record = Recollection(settings.preset.features, self.sensor, settings.horizon)
        self.model: SelfTuningModel | None = None
        self.counts: Counter[str] = Counter()
        self.costs = Costs()
        self.workspace: Workspace | None = None
        self._calibration = Calibration.start(
            settings.horizon, settings.levels, corrects=settings.preset.corrects
        )
        self._panel = _panel(settings) if settings.mixes else None
        self._next_try = 0  # steps at which a first fit is tried again
        self._ahead: dict[bytes, Ahead] = {}  # the next forecast, by its further columns

    def hold(self, workspace: Workspace | None) -> None:
        """Use this memory for all refits from now on; None holds none between them."""
        self.workspace = workspace
        if self.model is not None:
            self.model.hold(workspace)

    def changed(self) -> None:
        """Forget the next forecasts, and how the model has done: it was changed from outside."""
        self._ahead = {}
        self._panel = self._panel and self._panel.renewed()

    def issued(self, times: Vector) -> WindowLoss | None:
        """Return the loss of the model's forecasts at these times, as they were issued."""
        return self._calibration.issued(times)

    def losses(self) -> Vector | None:
        """Return the mean squared errors of model and companion since the last refit, if known."""
        return None if self._panel is None else self._panel.losses

    @property
    def correction(self) -> ErrorCorrection | None:
        """Return how the last errors correct the next forecast, None if they do not."""
        return self._calibration.correction

    @property
    def refit_due(self) -> bool:
        """Return whether a refit, or the first fit, should be made now."""
        if self.model is None:
            return len(self.sensor.timeline) >= self.first_try
        return self.model.learner.refit_due

    @property
    def first_try(self) -> int:
        """Return after how many steps a first fit is tried, or tried again."""
        return max(self._settings.warmup, self._next_try)

    def refit(self, workspace: Workspace | None) -> None:
        """Refit now, or make the first fit, in this memory."""
        self._ahead = {}
        if self.model is None:
            self._first_fit(workspace)
        else:
            self._count(self.model.refit(workspace))

    def look_back(self, step: int, value: float) -> None:
        """Take a reading of a step that has passed; the next refit learns from it."""
        if isnan(value):
            return
        arrival = self.sensor.look_back(step, value)
        self.counts[arrival] += 1
        if arrival == "late":
            self._ahead = {}
            self._try_first_fit()

    def take_history(self, history: Series) -> None:
        """Take a whole series at once; the first fit is made at its end.

        It is as if each step had been taken by `advance`, with a warm-up as long as the series.
        """
        names = self._settings.preset.features.extras
        columns = np.column_stack([history.extras[name] for name in names]) if names else None
        # A series that was made by hand does not say how its times are written.
        writing = None if history.writing == AS_IS else history.writing
        self.sensor.begin(history.clock, history.start, writing)
        for at, value in enumerate(history.values.tolist()):
            self._take_early(value, None if columns is None else columns[at])
        self._try_first_fit()

    def _take_early(self, value: float, columns: Vector | None) -> None:
        """Take a step of a history: a reading, or a gap that a season ago fills."""
        sensor = self.sensor
        if not np.isnan(value):
            self.counts["readings"] += 1
        if not sensor.bounds.hold(value):
            self.counts["implausible"] += 1
            value = np.nan
        elif np.isnan(value):
            self.counts["missing"] += sensor.has_readings
        if not np.isnan(value):
            sensor.push(value, value, None, columns)
        elif sensor.has_readings:
            sensor.push_gap(float(sensor.stand_in()[0][0]), columns)
        else:
            sensor.timeline.start_at(sensor.next_step + 1)
        self.record.keep_for(self._kept)

    def fill_gap(self, count: int) -> None:
        """Take `count` steps without a reading; those after a season are filled at once."""
        alone = min(count, self.sensor.patience + 1 if self.sensor.has_readings else 0)
        for _ in range(alone):
            self.advance(np.nan, None)
        if self.sensor.has_readings and count > alone:
            self._leap(count - alone)

    def _leap(self, count: int) -> None:
        """Take many steps without a reading at once."""
        self.sensor.leap(count)
        self.counts["missing"] += count
        self._pass_over(count)
        self._ahead = {}
        if self.model is not None:
            self.model.learner.pass_over(self.sensor.next_step - 1, count)

    def _pass_over(self, count: int = 1) -> None:
        """Let corrections fade over steps without a reading."""
        self._calibration = self._calibration.pass_over(count)
        self._panel = self._panel and self._panel.pass_over(count)

    def advance(self, value: float, columns: Vector | None) -> None:
        """Take the next step; the value is NaN without a reading, `columns` None if not known.

        A reading outside the known bounds is taken for none, but counted as implausible.
        """
        impossible = not self.sensor.bounds.hold(value)
        if impossible:
            self.counts["implausible"] += 1
            value = np.nan
        if not self.sensor.has_readings:
            if not isnan(value):  # else there is nothing to fill the gap with
                self.sensor.push(value, value, None, columns)
            return
        ahead = self.look_ahead(columns)
        self._ahead = {}
        if isnan(value):
            excluded = self.sensor.is_excluded(self.sensor.next_step)
            self.counts["missing"] += not (impossible or excluded)
            self._pass_over()
            self.sensor.push_gap(float(ahead.values[0]), columns)
            if self.model is not None:
                self.model.learner.pass_over(self.sensor.next_step - 1)
        else:
            self._take(value, ahead, columns)

    def _take(self, value: float, ahead: Ahead, columns: Vector | None) -> None:
        """Learn from a reading and its forecast."""
        step = self.sensor.next_step
        doubting = self._settings.guard and self.model is not None
        band = self._half_band(ahead) if doubting else None
        verdict = self.sensor.push(value, float(ahead.values[0]), band, columns)
        self._calibration = self._calibration.observe(
            step,
            value,
            ahead.made,
            learns=verdict == "good",
            plausible=verdict != "implausible",
        )
        self._panel = self._panel and self._panel.observe(
            step,
            value,
            ahead.heard,
            learns=verdict == "good",
            plausible=verdict != "implausible",
        )
        if self.model is None:
            self._try_first_fit()
        elif verdict == "good":
            self._count(self.model.observe(step, value))
        else:
            self.model.learner.pass_over(step)
            self.counts[verdict] += 1

    def _count(self, events: tuple[Event, ...]) -> None:
        """Count what happened, and let the sensor look at its readings after a refit."""
        if not events:
            return
        self.counts.update(events)
        if "fits" in events:
            self.sensor.renew()
            self._calibration = self._calibration.renewed(self.sensor.next_step - 1)
            self._panel = self._panel and self._panel.renewed()

    def look_ahead(self, columns: Vector | None) -> Ahead:
        """Return the forecast from the next step on, given its further columns; computed once."""
        key = b"" if columns is None else columns.tobytes()
        if key not in self._ahead:
            self._ahead = {key: self._looked_ahead(columns)}
        return self._ahead[key]

    def _looked_ahead(self, columns: Vector | None) -> Ahead:
        if self.model is None or not self._model_is_asked:
            return Ahead(*self.sensor.stand_in())
        past, step = self.sensor.past_before(columns), self.sensor.next_step
        inputs = input_at(self.model.features, past, step)
        made = self._made(self.model, inputs)
        if self._panel is None:
            return Ahead(made.values, "model", made)
        heard = self._heard(self._panel, made, self.model.companion(inputs))
        return Ahead(heard.mixture, self._source, made.issued(heard.mixture), heard)

    def _heard(self, panel: Panel, made: Made, raw: Vector) -> Heard:
        """Return what the model, its companion and the naive forecasts say of the next steps."""
        bounded = self.sensor.bounded(raw)
        companion = [self.sensor.bounded(panel.corrected(bounded))] if panel.accompanied else []
        fitted = np.array([made.values, *companion])
        opinions = np.concatenate((fitted, self.sensor.naive_opinions()))
        heard = panel.heard(made.step, bounded, opinions)
        if not self.sensor.has_bounds:
            return heard
        # A mean of equal numbers may miss them by rounding.
        return heard.issued(self.sensor.bounds.clipped(heard.mixture))

    @property
    def experts(self) -> dict[str, float]:
        """Return the weights of the experts in the next forecast by name; empty without any."""
        if self._panel is None or self.model is None or not self._model_is_asked:
            return {}
        asleep = () if self.model.has_companion else (COMPANION,)
        return self._panel.weights(asleep if self.sensor.remembers_last else (*asleep, LAST))

    @property
    def _model_is_asked(self) -> bool:
        """Return whether a model has a say in the next forecast: not after a long silence."""
        return self.sensor.silent <= self._settings.patience

    @property
    def _source(self) -> Source:
        """Return what the next forecast is, mostly."""
        weights = self.experts
        naive = [name for name in weights if name not in MODELS]
        if sum(weights[name] for name in naive) <= 0.5:
            return "model"
        return "last" if max(naive, key=weights.__getitem__) == LAST else "seasonal"

    def _made(self, model: SelfTuningModel, inputs: Inputs) -> Made:
        """Return the model's forecast from the next step on."""
        step = self.sensor.next_step
        raw, spreads = model.learner.forecast(inputs)
        spreads = self._widened(self._raised(np.maximum(spreads, self.sensor.least)))
        made = self._calibration.made(step, self.sensor.bounded(raw), spreads)
        return made.issued(self.sensor.bounded(made.values))

    def _raised(self, spreads: Vector) -> Vector:
        """Return the sizes of errors to expect, on average at least a share of those of late."""
        errors = self._calibration.errors
        if errors.are_few:
            return spreads
        mean = sum(spreads.tolist()) / len(spreads)
        return spreads * max(LEAST_SHARE * float(errors.means[0]) / mean, 1.0)

    def _widened(self, spreads: Vector) -> Vector:
        """Return the sizes of errors to expect of a silent sensor, up to those of a naive one."""
        if not self.sensor.silent:
            return spreads
        ahead = 1 + np.arange(len(spreads))
        below, above = self._calibration.bands.offsets(spreads, (JUDGED,))
        lowest, highest = self.sensor.naive_offsets(spreads, (JUDGED,))
        most = ((highest - lowest) / (above - below))[:, 0]
        wider = np.minimum(np.sqrt((self.sensor.silent + ahead) / ahead), most)
        return spreads * np.maximum(wider, 1.0)

    def bands(self, ahead: Ahead, levels: Levels) -> tuple[Matrix, Matrix]:
        """Return the lower and upper ends of the next forecast's bands, (H, L) each."""
        values = ahead.values[:, None]
        below, above = self._offsets(ahead, levels)
        return (
            np.minimum(self.sensor.bounded(values + below), values),
            np.maximum(self.sensor.bounded(values + above), values),
        )

    def _offsets(self, ahead: Ahead, levels: Levels) -> tuple[Matrix, Matrix]:
        """Return how far the next forecast's bands reach below and above it, (H, L) each."""
        if ahead.made is None:
            return self.sensor.naive_offsets(ahead.values, levels)
        return self._calibration.bands.offsets(ahead.made.spreads, levels)

    def _half_band(self, ahead: Ahead) -> float:
        """Return the wider side of the band that the next reading is judged by, without unrest.

        A glitch must not make the next one credible.
        """
        if ahead.made is None:
            below, above = self.sensor.naive_offsets(ahead.values, (JUDGED,))
            return float(max(above[0, 0], -below[0, 0]))
        return self._calibration.bands.half_width(float(ahead.made.calm[0]))

    def _try_first_fit(self) -> None:
        """Start the model once there is enough history, unless refits wait to be asked for."""
        if self.model is not None:
            return
        self.record.keep_for(self._kept)
        if self.refit_due and not self._settings.defer_refits:
            self._first_fit(None)

    def _first_fit(self, workspace: Workspace | None) -> None:
        """Start the model, if enough rows can be made; else try again some steps later."""
        self._next_try = len(self.sensor.timeline) + self._settings.update_every // 8 + 1
        if self._settings.guard:
            self.sensor.doubt_history()
        least = max(LEAST_ROWS, self._settings.horizon)
        if len(self.record.latest(least)) < least:
            return
        memory = workspace or self.workspace or Workspace()
        try:
            model = SelfTuningModel.started(
                self._settings, self.record, self.costs, memory, self.issued, self.losses
            )
        except FitError:  # it may succeed with more readings
            self.counts["failed_refits"] += 1
            return
        self.model = model
        self.model.hold(self.workspace)
        self._count(("fits",))

    @property
    def _kept(self) -> int:
        """Return how many steps are kept for the first fit, beside those that its rows look at."""
        return max(self._settings.look_back, self._settings.warmup)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: the memory of refits is not."""
        return self.__dict__ | {"workspace": None}

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that changes, except the counts and the clock, as arrays."""
        return joined(
            {
                "sensor": self.sensor.state(),
                "calibration": self._calibration.state(),
                "panel": self._panel.state() if self._panel else {},
                "model": self.model.state() if self.model else {},
                "costs": {"seconds": np.array(astuple(self.costs))},
                "own": {"next_try": np.array(self._next_try)},
            }
        )

    def restore(self, state: Mapping[str, NDArray[Any]], *, fitted: bool) -> None:
        """Continue from the state of a stepper with the same settings."""
        self.costs = Costs(*state["costs.seconds"].tolist())
        self._next_try = int(state["own.next_try"])
        self.sensor.restore(part(state, "sensor"))
        self._calibration = self._calibration.restore(part(state, "calibration"))
        self._panel = self._panel and self._panel.restore(part(state, "panel"))
        if fitted:
            learned = part(state, "model")
            self.model = SelfTuningModel.resumed(
                self._settings, learned, self.record, self.costs, self.issued, self.losses
            )


def _panel(settings: Settings) -> Panel:
    """Return the panel of a forecaster before any error is known."""
    fitted = MODELS if settings.has_companion else MODELS[:1]
    seasons = tuple(season_name(season) for season in settings.seasons[::-1])
    experts = Experts.start((*fitted, *seasons, LAST), settings.horizon, settings.day)
    return Panel.start(
        experts, accompanied=settings.has_companion, corrects=settings.preset.corrects
    )
