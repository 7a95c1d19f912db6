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
EXPECTED_3 = json.loads((GOLDEN / "expected-3.json").read_text())
LATER = {
    version: json.loads((GOLDEN / f"expected-{version}.json").read_text())["forecasts"]
    for version in (4, 5)
}
REFIT_AT = 145 - 130  # the refit by this version is at step 144
START, HOUR = np.datetime64("2021-06-13T00:00", "m"), np.timedelta64(60, "m")


def wave(count):
    t = np.arange(count)
    return (100 + 50 * np.sin(2 * np.pi * t / 24) + 10 * np.sin(2 * np.pi * t / 37)).round(3)


def lived(forecaster):
    """Return the forecasts before each of the readings after the first 130, with their bands."""
    values, rows = wave(180), []
    for i in range(130, 180):
        forecast = forecaster.predict()
        rows.append([forecast.value, forecast.lower, forecast.upper])
        forecaster.observe(START + i * HOUR, values[i])
    return rows


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_of_format_1_goes_on_as_the_version_that_saved_it(name):
    expected = EXPECTED[name]

    forecaster = Forecaster.load(GOLDEN / f"format-1-{name}.sr")
    rows = lived(forecaster)

    # Its fit is made again; refits after that see rows that earlier versions left out.
    until = 24 - 7  # the file is seven readings after its last refit
    now, then = (np.array(each)[:until] for each in (rows, expected["forecasts"]))
    np.testing.assert_allclose(now[0], then[0], rtol=1e-6)
    # Corrections of several half-lives, and bands that follow unrest, come apart from there on.
    np.testing.assert_allclose(now[:, 0], then[:, 0], rtol=0.05)
    np.testing.assert_allclose(now, then, rtol=0.1)
    np.testing.assert_allclose(
        np.array(rows)[:, 0], np.array(expected["forecasts"])[:, 0], rtol=0.05
    )
    assert forecaster.hyperparameters == pytest.approx(expected["hyperparameters"], rel=0.3)
    assert forecaster.counts == expected["counts"]
    assert list(forecaster.frozen) == expected["frozen"]


def test_courses_of_format_4_forget_nothing_and_nothing_of_that_is_learned():
    forecaster = Forecaster.load(GOLDEN / "format-4-online.sr")

    lived(forecaster)

    seasons = forecaster.settings.preset.features.seasons
    assert [(each.count, each.forgetting) for each in seasons] == [(7, 0.0), (4, 0.0)]
    assert not [name for name in forecaster.hyperparameters if "forgetting" in name]


def whole_and_later():
    return ((GOLDEN / f"format-3-{part}.sr").read_bytes() for part in ("whole", "later"))


@pytest.mark.parametrize("in_parts", [False, True], ids=["one file", "two parts"])
def test_a_file_of_format_3_goes_on_where_it_was(in_parts):
    content = (GOLDEN / "format-3-online.sr").read_bytes()

    forecaster = Forecaster.from_bytes(*(whole_and_later() if in_parts else [content]))
    rows = lived(forecaster)

    # Gaps count towards the end of a window now: the refit comes a step earlier than it did then.
    now, then = (np.array(each)[:REFIT_AT] for each in (rows, EXPECTED_3["forecasts"]))
    np.testing.assert_allclose(now[0], then[0], rtol=1e-12)
    np.testing.assert_allclose(now, then, rtol=0.1)
    values, before = (np.array(each)[:, 0] for each in (rows, EXPECTED_3["forecasts"]))
    np.testing.assert_allclose(values, before, rtol=0.05)
    for name in ("late", "missing", "readings"):
        assert forecaster.counts[name] == EXPECTED_3["counts"][name]


@pytest.mark.parametrize("version", LATER)
def test_a_file_of_a_later_format_goes_on_where_it_was(version):
    forecaster = Forecaster.load(GOLDEN / f"format-{version}-online.sr")

    rows = lived(forecaster)

    now, then = (np.array(each)[: len(LATER[version])] for each in (rows, LATER[version]))
    if version == 4:  # experts of format 5 had weights, which start anew
        np.testing.assert_allclose(now[0], then[0], rtol=1e-12)
    # The experts start anew, and mix otherwise: within a tenth of the wave's level.
    np.testing.assert_allclose(now, then, atol=10.0)


def test_experts_and_guard_of_format_5_start_anew():
    forecaster = Forecaster.load(GOLDEN / "format-5-online.sr")

    model = forecaster._stepper.model
    assert forecaster.experts == {"model": 1.0, "start": 0.0, "week": 0.0, "day": 0.0, "last": 0.0}
    assert not model.has_companion
    assert model._guard.state()["losses"].tolist() == [0.0, 0.0]
    lived(forecaster)
    assert model.has_companion


def test_what_has_changed_since_a_refit_of_format_3_goes_with_its_whole():
    whole, later = whole_and_later()
    forecaster = Forecaster.from_bytes(whole, later)
    forecaster.observe(START + 130 * HOUR, 99.0)

    twin = Forecaster.from_bytes(whole, forecaster.to_bytes(since_refit=True))

    for part in ("value", "lower", "upper"):
        one, other = (getattr(each.predict(), part) for each in (twin, forecaster))
        np.testing.assert_array_equal(one, other)


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
