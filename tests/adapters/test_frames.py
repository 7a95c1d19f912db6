"""Long frames: equal to `sr.forecast`, cheap updates, gaps, unequal ends, bad input."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import streamridge as sr
from streamridge.adapters.frames import StreamRidge
from streamridge.errors import InvalidInputError
from streamridge.forecaster.forecaster import Forecaster
from tests.support.long_frames import SETTINGS, H, long_frame

BANDS = ["StreamRidge-lo-80", "StreamRidge-hi-80", "StreamRidge-lo-95", "StreamRidge-hi-95"]


@pytest.fixture(scope="module")
def df() -> pd.DataFrame:
    """Twelve days of two hourly series."""
    return long_frame(np.arange(288))


def test_forecasts_equal_those_of_the_library(df):
    made = StreamRidge(**SETTINGS).forecast(df, H, level=[80, 95])

    own = sr.forecast(df, H, level=[0.8, 0.95], id="unique_id", time="ds", value="y", **SETTINGS)
    assert list(made.columns) == ["unique_id", "ds", "StreamRidge", *BANDS]
    assert made["unique_id"].tolist() == own["sensor"].tolist()
    assert made["ds"].dtype == df["ds"].dtype
    assert (made["ds"] == own["time"]).all()
    for name, theirs in zip(
        ["StreamRidge", *BANDS],
        ["value", "lower_80", "upper_80", "lower_95", "upper_95"],
        strict=True,
    ):
        np.testing.assert_array_equal(made[name], own[theirs])


def test_fit_and_predict_equal_forecast(df):
    model = StreamRidge(**SETTINGS)

    pd.testing.assert_frame_equal(model.fit(df).predict(H), model.forecast(df, H))


def test_a_frame_of_polars_gives_a_frame_of_polars(df):
    made = StreamRidge(**SETTINGS).forecast(pl.from_pandas(df), H, level=[80])

    own = StreamRidge(**SETTINGS).forecast(df, H, level=[80])
    assert isinstance(made, pl.DataFrame)
    assert made.columns == list(own.columns)
    assert made["ds"].to_list() == own["ds"].tolist()
    np.testing.assert_array_equal(made["StreamRidge"], own["StreamRidge"])


def split(df: pd.DataFrame, hours: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a frame without its last hours, and these."""
    late = df["ds"] > df["ds"].max() - pd.Timedelta(hours, "h")
    return df[~late], df[late]


def started(df: pd.DataFrame) -> dict[str, sr.Forecaster]:
    """Return a forecaster for each series, as a user would start it."""
    return {
        name: sr.Forecaster.start(rows.set_index("ds")["y"], horizon=H, **SETTINGS)
        for name, rows in df.groupby("unique_id")
    }


def test_an_update_observes_without_a_fit_from_scratch(df, monkeypatch):
    before, new = split(df, 4)
    model, own = StreamRidge(**SETTINGS).fit(before), started(before)
    model.predict(H)
    monkeypatch.setattr(Forecaster, "from_settings", None)  # a new start would fail

    made = model.update(new).predict(H)

    for name, rows in new.groupby("unique_id"):
        for time, value in zip(rows["ds"], rows["y"], strict=True):
            own[name].observe(time, value)
        ours = made[made["unique_id"] == name]["StreamRidge"]
        np.testing.assert_array_equal(ours, own[name].predict().value)


def test_an_update_before_the_first_forecast_counts(df):
    before, new = split(df, 4)

    made = StreamRidge(**SETTINGS).update(before).update(new).predict(H)

    pd.testing.assert_frame_equal(made, StreamRidge(**SETTINGS).forecast(df, H))


def test_an_update_starts_new_series(df):
    north = df[df["unique_id"] == "north"]
    model = StreamRidge(**SETTINGS).fit(north)
    model.predict(H)

    made = model.update(df[df["unique_id"] == "south"]).predict(H)

    pd.testing.assert_frame_equal(made, StreamRidge(**SETTINGS).forecast(df, H))


def test_a_larger_horizon_fits_to_all_readings(df):
    before, new = split(df, 4)
    model = StreamRidge(**SETTINGS).fit(before)
    model.predict(2)

    made = model.update(new).predict(H)

    pd.testing.assert_frame_equal(made, StreamRidge(**SETTINGS).forecast(df, H))
    pd.testing.assert_frame_equal(
        model.predict(2).reset_index(drop=True),
        made.groupby("unique_id").head(2).reset_index(drop=True),
    )


def test_cross_validation_learns_between_windows(df):
    made = StreamRidge(**SETTINGS).cross_validation(df, H, n_windows=3, step_size=4, level=[80])

    assert list(made.columns) == ["unique_id", "ds", "cutoff", "y", "StreamRidge", *BANDS[:2]]
    assert len(made) == 2 * 3 * H
    last = df["ds"].max()
    hours = [pd.Timedelta(each, "h") for each in (14, 10, 6)]
    assert made["cutoff"].drop_duplicates().tolist() == [last - each for each in hours]
    truth = made.merge(df, on=["unique_id", "ds"], suffixes=("", "_df"))
    np.testing.assert_array_equal(truth["y"], truth["y_df"])
    before, new = split(df, 14)
    own = started(before)["north"]
    for time, value in new[new["unique_id"] == "north"][["ds", "y"]].itertuples(index=False):
        rows = made[(made["unique_id"] == "north") & (made["cutoff"] == time - hours[2] / 6)]
        if len(rows):
            np.testing.assert_array_equal(rows["StreamRidge"], own.predict().value)
        own.observe(time, value)


def test_cross_validation_can_start_anew_before_each_window(df):
    made = StreamRidge(**SETTINGS).cross_validation(df, H, n_windows=2, refit=True)

    for cutoff, rows in made.groupby("cutoff"):
        own = StreamRidge(**SETTINGS).forecast(df[df["ds"] <= cutoff], H)
        np.testing.assert_array_equal(rows["StreamRidge"], own["StreamRidge"])


def test_whole_numbers_are_times_too(df):
    index = df.assign(ds=df.groupby("unique_id").cumcount().astype("int32"), unique_id=7)[:288]

    made = StreamRidge(seasons=(24,), **SETTINGS).forecast(index, H)

    assert made["ds"].tolist() == list(range(288, 288 + H))
    assert made.dtypes["ds"] == index.dtypes["ds"]
    assert made["unique_id"].tolist() == [7] * H
    assert made.dtypes["unique_id"] == index.dtypes["unique_id"]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_zones_stay(df, unit):
    zoned = df.assign(ds=df["ds"].dt.as_unit(unit).dt.tz_localize("Europe/Berlin"))

    made = StreamRidge(**SETTINGS).cross_validation(zoned, H, n_windows=2)

    assert made["ds"].dtype == made["cutoff"].dtype == zoned["ds"].dtype


def test_a_gap_shifts_nothing(df):
    gap = (df["unique_id"] == "north") & df["ds"].between("2021-06-20 03:00", "2021-06-21 01:00")
    late = df["ds"] == df["ds"].max() - pd.Timedelta(2, "h")

    made = StreamRidge(**SETTINGS).cross_validation(df[~gap & ~late], H, n_windows=2)

    whole = StreamRidge(**SETTINGS).cross_validation(df, H, n_windows=2)
    missing = whole["ds"] == df["ds"].max() - pd.Timedelta(2, "h")
    times = ["unique_id", "ds", "cutoff"]
    pd.testing.assert_frame_equal(made[times], whole[~missing][times].reset_index(drop=True))
    assert np.abs(made["StreamRidge"] - made["y"]).mean() < 10


def test_a_series_that_ended_early_is_named(df):
    north = df["unique_id"] == "north"
    early = df[~(north & (df["ds"] > df["ds"].max() - pd.Timedelta(5, "h")))]

    with pytest.warns(UserWarning, match="north: its last reading is of 2021-06-25T18:00"):
        made = StreamRidge(**SETTINGS).forecast(early, H)

    first = made.groupby("unique_id")["ds"].min()
    assert (first["south"] - first["north"]) == pd.Timedelta(5, "h")


def test_a_short_series_has_a_naive_forecast_with_a_note(df):
    with pytest.warns(UserWarning, match="north: the history is too short for a model"):
        made = StreamRidge().forecast(df[:20], 2)

    assert made["StreamRidge"].notna().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda df: df.drop(columns="y"), "got none named 'y' among 'unique_id', 'ds'"),
        (lambda df: df.assign(rain=0), "got 'rain' as well. Drop other columns"),
        (lambda df: df.set_index("unique_id"), "got none named 'unique_id'"),
        (lambda df: df["y"].tolist(), "df must be a DataFrame of pandas or polars, got"),
        (lambda df: df[:0], "must have at least one reading, got none"),
        (lambda df: df.assign(y="many"), "many"),
        (lambda df: df.assign(y=np.inf), "inf"),
        (lambda df: df.assign(y=1e13), r"must be at most 1e\+12 in size"),
    ],
)
def test_bad_frames_are_value_errors(df, change, message):
    with pytest.raises(ValueError, match=message):
        StreamRidge().forecast(change(df), H)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"h": 0}, "h must be a whole number of at least 1, got 0"),
        ({"h": H, "level": [0]}, "level must be percents between 0 and 100"),
        ({"h": H, "level": 80}, r"level must be a list such as \[80, 95\], got 80"),
        ({"h": H, "level": [100]}, "level must be percents between 0 and 100"),
        ({"h": H, "level": [80, 80]}, "level must be one number, or several that differ"),
        ({"h": 400}, "north: h, n_windows and step_size must leave readings before"),
        ({"h": H, "n_windows": 0}, "n_windows must be a whole number of at least 1"),
        ({"h": H, "step_size": 0}, "step_size must be a whole number of at least 1"),
        ({"h": H, "refit": 1.5}, "refit must be a whole number of at least 0, got 1.5"),
        ({"h": H, "refit": -1}, "refit must be a whole number of at least 0"),
    ],
)
def test_bad_arguments_are_value_errors(df, arguments, message):
    with pytest.raises(ValueError, match=message):
        StreamRidge(**SETTINGS).cross_validation(df, **arguments)


def test_a_forecast_needs_readings():
    with pytest.raises(ValueError, match="fit must be called before predict"):
        StreamRidge().predict(H)


def test_an_update_of_another_library_is_a_value_error(df):
    model = StreamRidge().fit(df)

    with pytest.raises(ValueError, match="df must be a DataFrame of pandas, as in fit"):
        model.update(pl.from_pandas(df))


def test_a_bad_update_changes_nothing(df):
    before, new = split(df, 4)
    model = StreamRidge(**SETTINGS).fit(before)
    made = model.predict(H)

    with pytest.raises(ValueError, match=r"must be at most 1e\+12 in size"):
        model.update(new.assign(y=np.where(new["unique_id"] == "south", 1e13, new["y"])))

    pd.testing.assert_frame_equal(model.predict(H), made)


def test_whole_numbers_in_fit_do_not_round_later_values(df):
    before, new = split(df, 4)
    whole = before.assign(y=before["y"].round().astype(int))

    made = StreamRidge(**SETTINGS).fit(whole).update(new).predict(H)

    rows = pd.concat([whole.astype({"y": float}), new])
    pd.testing.assert_frame_equal(made, StreamRidge(**SETTINGS).forecast(rows, H))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
@pytest.mark.parametrize(
    ("fitted", "given", "message"),
    [
        ({"unique_id": 7}, {"unique_id": "b"}, "'unique_id' must hold whole numbers, as in fit"),
        ({"unique_id": 7}, {"unique_id": 7.5}, "got Float64. Convert the column first"),
        ({}, {"ds": "zoned"}, "'ds' must hold times without a zone, as in fit, got times with a"),
        ({"ds": "zoned"}, {}, "'ds' must hold times with a zone, as in fit, got times without a"),
        ({}, {"ds": 5}, "'ds' must hold times without a zone, as in fit, got whole numbers"),
        ({}, {"y": "0.9"}, "'y' must hold Float64, as in fit, got text"),
    ],
)
def test_an_update_of_other_types_is_a_value_error(df, library, fitted, given, message):
    df = df[:288]
    zoned = {"ds": df["ds"].dt.tz_localize("Europe/Berlin")}
    fitted, given = (zoned if each == {"ds": "zoned"} else each for each in (fitted, given))
    model = StreamRidge(**SETTINGS).fit(library(df.assign(**fitted)))

    with pytest.raises(InvalidInputError, match=message):
        model.update(library(df.assign(**given)))


def test_an_update_with_numbers_too_large_for_their_type_is_a_value_error(df):
    model = StreamRidge(**SETTINGS).fit(df[:288].assign(unique_id=np.int8(7)))

    with pytest.raises(InvalidInputError, match="'unique_id' must hold numbers of the type Int8"):
        model.update(df[:288].assign(unique_id=7 + 256))


def test_values_that_are_no_numbers_are_value_errors(df):
    values = [None, object()] * (len(df) // 2)

    with pytest.raises(InvalidInputError, match="'y' must hold numbers, got Object"):
        StreamRidge().fit(df.assign(y=values))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_rows_without_a_value_change_nothing(df, library):
    before, new = split(df, 4)
    model = StreamRidge(**SETTINGS).fit(library(before))
    made = model.predict(H)

    model.update(library(new.assign(y=np.nan))).update(library(new[:0]))
    if library is pl.from_pandas:
        model.update(library(new).with_columns(y=float("nan")))

    assert model.predict(H).equals(made)


def test_an_update_keeps_gaps(df):
    before, new = split(df, 4)
    model, other = (StreamRidge(**SETTINGS).fit(before) for _ in range(2))
    first = new["ds"] == new["ds"].min()
    for each in (model, other):
        each.predict(H)

    made = model.update(new.assign(y=new["y"].mask(first))).predict(H)

    pd.testing.assert_frame_equal(made, other.update(new[~first]).predict(H))
    assert made["ds"].min() == df["ds"].max() + pd.Timedelta("1h")


def test_single_rows_start_a_new_series(df):
    model = StreamRidge(**SETTINGS).fit(df)
    model.predict(H)
    rows = df[-3:].assign(unique_id="west")

    for at in range(3):
        model.update(rows[at : at + 1])

    made = model.predict(H)
    west = made[made["unique_id"] == "west"]
    assert west["ds"].tolist() == made[made["unique_id"] == "south"]["ds"].tolist()
    assert west["StreamRidge"].notna().all()


def test_a_pickled_model_continues(df):
    before, new = split(df, 4)
    model = StreamRidge(**SETTINGS).fit(before)
    model.predict(H)

    again = pickle.loads(pickle.dumps(model)).update(new)

    pd.testing.assert_frame_equal(again.predict(H), model.update(new).predict(H))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"foo": 1}, "StreamRidge must be given options among .*, got 'foo'"),
        ({"horizon": 3}, "horizon must be left out, got 3. Pass h to predict"),
        ({"level": 0.5}, "level must be left out, got 0.5. Pass it to predict, in percent"),
        ({"value": "q"}, "value must be left out, got 'q'. Pass target_col"),
        ({"alias": "ds"}, "alias must differ from all other columns, got 'ds'"),
        ({"alias": "cutoff"}, "alias must differ from all other columns, got 'cutoff'"),
    ],
)
def test_bad_options_are_value_errors_before_any_work(options, message):
    with pytest.raises(InvalidInputError, match=message):
        StreamRidge(**options)
