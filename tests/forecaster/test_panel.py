"""What the panel keeps beside the experts: how the model and its companion have done of late."""

import numpy as np
import pytest

from streamridge import Forecaster, InvalidInputError
from streamridge.forecaster.experts import Experts
from streamridge.forecaster.panel import Panel

NAMES = ("model", "start", "day", "last")
HOURS = np.datetime64("2021-06-13T00:00", "m") + np.arange(400) * np.timedelta64(60, "m")


def panel(*, horizon=1, accompanied=True, corrects=True):
    names = NAMES if accompanied else ("model", "day", "last")
    experts = Experts.start(names, horizon, day=24)
    return Panel.start(experts, accompanied=accompanied, corrects=corrects)


def told(panel, step, said, value, *, learns=True, plausible=True):
    """Return the panel after all experts said something of a step, the companion without offset."""
    opinions = np.array(said, dtype=float)
    heard = panel.heard(step, opinions[1], opinions)
    return panel.observe(step, value, heard, learns=learns, plausible=plausible)


def test_losses_are_mean_squared_errors_since_the_last_refit():
    after = told(panel(), 0, [[3.0], [1.0], [0.0], [0.0]], value=2.0)
    after = told(after, 1, [[5.0], [2.0], [0.0], [0.0]], value=2.0)

    np.testing.assert_allclose(after.losses, [(1 + 9) / 2, (1 + 0) / 2])
    assert after.renewed().losses is None


def test_losses_are_those_of_all_horizons():
    said = [[3.0, 5.0], [1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]

    after = told(panel(horizon=2), 0, said, value=2.0)
    after = after.observe(1, 2.0, None, learns=True, plausible=True)

    np.testing.assert_allclose(after.losses, [(1 + 9) / 2, (1 + 0) / 2])


@pytest.mark.parametrize(
    ("companion", "learns"), [(1.0, False), (np.nan, True)], ids=["an outlier", "nothing said"]
)
def test_what_is_not_learned_from_or_not_said_is_not_compared(companion, learns):
    after = told(panel(), 0, [[3.0], [companion], [0.0], [0.0]], value=2.0, learns=learns)

    assert after.losses is None


def test_without_a_companion_nothing_is_compared():
    after = told(panel(accompanied=False), 0, [[3.0], [1.0], [0.0]], value=2.0)

    assert after.losses is None
    assert after.experts.names == ("model", "day", "last")


def test_a_companion_is_corrected_where_the_model_is():
    raw = np.array([1.0])

    for corrects, offset in ((True, 1.0), (False, 0.0)):
        after = panel(corrects=corrects)
        for step in range(60):
            after = told(after, step, [[2.0], [1.0], [0.0], [0.0]], value=2.0)
        assert after.corrected(raw) - raw == pytest.approx(offset, abs=0.2)


def test_restored_it_goes_on_and_refuses_what_is_damaged():
    before = told(panel(), 0, [[3.0], [1.0], [0.0], [0.0]], value=2.0)

    after = panel().restore(before.state())

    np.testing.assert_array_equal(after.losses, before.losses)
    with pytest.raises(InvalidInputError, match="squares must have shape"):
        panel().restore({**before.state(), "window.squares": np.zeros(3)})
    with pytest.raises(InvalidInputError, match="seen must be a whole number"):
        panel().restore({**before.state(), "window.seen": np.array(-1)})


def lived(count):
    forecaster = Forecaster("1h", train_size=60, update_every=24)
    rng = np.random.default_rng(0)
    values = 100 + 50 * np.sin(np.arange(count) * 2 * np.pi / 24) + rng.normal(0, 5, count)
    for time, value in zip(HOURS[:count], values, strict=True):
        forecaster.observe(time, value)
    return forecaster


def test_a_refit_and_a_new_setting_start_the_comparison_anew():
    forecaster = lived(130)
    assert forecaster._stepper.losses() is not None

    forecaster.set(regularization=3.0)

    assert forecaster._stepper.losses() is None


@pytest.mark.parametrize("since_refit", [False, True], ids=["whole", "in two parts"])
def test_saved_within_a_window_the_comparison_goes_on(since_refit):
    whole, forecaster = lived(124).to_bytes(), lived(130)

    later = forecaster.to_bytes(since_refit=True)
    twin = Forecaster.from_bytes(*((whole, later) if since_refit else (forecaster.to_bytes(),)))

    np.testing.assert_array_equal(twin._stepper.losses(), forecaster._stepper.losses())
