"""Remedies: what an error tells to pass in Python is taken, and it helps."""

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster, InvalidInputError, compare, replay

HOURS = pd.date_range("2021-06-13", periods=120, freq="h")
VALUES = 100 + 50 * np.sin(2 * np.pi * np.arange(120) / 24)
QUICK = {"train_size": 48, "warmup": 24}


def hourly(**columns):
    return pd.DataFrame({"time": HOURS.astype(str), "ramp": VALUES, **columns})


def with_infinity():
    return hourly().assign(ramp=np.where(np.arange(120) == 60, np.inf, VALUES))


def quarters():
    times = pd.date_range("2021-06-13", periods=480, freq="15min")
    return pd.DataFrame({"time": times.astype(str), "ramp": np.repeat(VALUES, 4)})


def with_a_stray_stamp():
    return hourly().assign(time=["1990-01-01", *HOURS.astype(str)[1:]])


CASES = {
    "gap": (with_infinity, 'gap="skip" in Python', {"gap": "skip"}),
    "aggregate": (quarters, 'aggregate="sum" in Python', {"aggregate": "sum"}),
    "sensor": (lambda: hourly(main=VALUES), "sensor= in Python", {"sensor": "main"}),
    "from_": (with_a_stray_stamp, "from_= in Python", {"from_": "2021-06-13"}),
}
WAYS = {
    "replay": lambda source, **options: replay(Forecaster("1h", **QUICK), source, **options),
    "compare": lambda source, **options: compare(source, "fixed", step="1h", **QUICK, **options),
    "start": lambda source, **options: Forecaster.start(source, step="1h", **QUICK, **options),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_the_remedy_named_by_an_error_works(way, case):
    make, named, remedy = CASES[case]
    if (way, case) != ("compare", "sensor"):  # it compares all sensors
        with pytest.raises(InvalidInputError) as caught:
            WAYS[way](make())
        assert named in str(caught.value)

    WAYS[way](make(), **remedy)


def test_what_the_forecaster_decides_must_agree():
    replay(Forecaster("1h", **QUICK), hourly(), step="1h", tz=None, extras=())

    for wrong in ({"step": "15min"}, {"tz": "Europe/London"}, {"extras": ("rain",)}):
        with pytest.raises(InvalidInputError, match="must be the forecaster's"):
            replay(Forecaster("1h", **QUICK), hourly(), **wrong)


@pytest.mark.parametrize(
    "wrong", [{"aggregate": "median"}, {"fold": "x"}, {"layout": "x"}], ids=str
)
def test_an_unknown_word_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="must be one of"):
        replay(Forecaster("1h", **QUICK), hourly(), **wrong)


def test_many_lags_start_within_their_bounds():
    assert min(Forecaster("1h", lags=1000).hyperparameters.values()) > 0


@pytest.mark.parametrize(
    "call", [lambda f: f.save(5), lambda f: f.tuning.freeze(["a"])], ids=["save", "freeze"]
)
def test_wrong_types_are_invalid_input(call):
    forecaster = Forecaster.start(hourly(), **QUICK)

    with pytest.raises(InvalidInputError, match=r"must be (the name of a file|one of)"):
        call(forecaster)
    with pytest.raises(InvalidInputError, match="must be the name of a file, got None"):
        Forecaster.load(None)


def test_before_the_first_reading_an_index_has_no_dates():
    assert Forecaster(1).predict().time.dtype.kind == "f"


def test_runs_compare_by_content_and_show_themselves_in_a_line():
    first, again = (replay(Forecaster("1h", **QUICK), hourly()) for _ in range(2))
    other = replay(Forecaster("1h", **QUICK), hourly(), steps=5)

    assert first == again
    assert first != other
    assert first != "a run"
    assert repr(first).startswith("Run(sensor='ramp', method='ohl', scored=96, rmse=")
    table = compare(hourly(), "ohl,fixed", **QUICK)
    assert table == compare(hourly(), "ohl,fixed", **QUICK)
    assert repr(table) == "Comparison(2 runs of 'ramp' by 'ohl', 'fixed')"
    for each in (first, table, Forecaster("1h")):
        assert each._repr_html_().startswith("<table>")
    assert repr(Forecaster("1h")) == (
        "Forecaster(sensor=None, step='1h', horizon=1, method='ohl', readings=0, "
        "state='no readings yet')"
    )
