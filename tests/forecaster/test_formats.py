"""Files that earlier versions saved: they load, and go on with the same forecasts."""

import json
from pathlib import Path

import numpy as np
import pytest

from streamridge import Forecaster
from streamridge.features.profiles import Profiles, Season
from streamridge.forecaster.formats import upgraded_preset
from streamridge.forecaster.recipes import build

GOLDEN = Path(__file__).parent / "golden"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
START, HOUR = np.datetime64("2021-06-13T00:00", "m"), np.timedelta64(60, "m")


def wave(count):
    t = np.arange(count)
    return (100 + 50 * np.sin(2 * np.pi * t / 24) + 10 * np.sin(2 * np.pi * t / 37)).round(3)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_of_format_1_goes_on_as_the_version_that_saved_it(name):
    expected, values = EXPECTED[name], wave(180)

    forecaster = Forecaster.load(GOLDEN / f"format-1-{name}.sr")
    rows = []
    for i in range(130, 180):
        forecast = forecaster.predict()
        rows.append([forecast.value, forecast.lower, forecast.upper])
        forecaster.observe(START + i * HOUR, values[i])

    # Its fit is made again; refits after that see rows that earlier versions left out.
    until = 24 - 7  # the file is seven readings after its last refit
    np.testing.assert_allclose(rows[:until], expected["forecasts"][:until], rtol=1e-6)
    np.testing.assert_allclose(
        np.array(rows)[:, 0], np.array(expected["forecasts"])[:, 0], rtol=0.05
    )
    assert forecaster.hyperparameters == pytest.approx(expected["hyperparameters"], rel=0.2)
    assert forecaster.counts == expected["counts"]
    assert list(forecaster.frozen) == expected["frozen"]


@pytest.mark.parametrize("name", EXPECTED)
def test_saved_again_it_is_a_file_of_the_newest_format(name, tmp_path):
    old = Forecaster.load(GOLDEN / f"format-1-{name}.sr")

    old.save(tmp_path / "new.sr")

    content = (tmp_path / "new.sr").read_bytes()
    assert b"model.learner.policy." in content
    assert b"descent" not in content
    new = Forecaster.load(tmp_path / "new.sr")
    np.testing.assert_array_equal(new.predict().value, old.predict().value)


def test_features_of_days_and_weeks_become_seasons():
    features = {"kind": "Profiles", "day": 96, "lags": 16, "week_lags": 4, "days": 7, "weeks": 4}
    features |= {"ahead": 1, "extras": ["rain"]}

    upgraded = upgraded_preset({"kind": "Preset", "features": features})

    day, week = Season("day", 96, count=7, lags=16), Season("week", 672, count=4, lags=4)
    assert build(upgraded["features"]) == Profiles((day, week), extras=("rain",))


def test_other_features_stay_as_they_are():
    recipe = {"kind": "Preset", "features": {"kind": "Features", "lags": 20}}

    assert upgraded_preset(recipe) is recipe
