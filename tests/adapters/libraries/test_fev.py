"""The model of fev: windows continue as live, scores, several targets, and bad input."""

import numpy as np
import pandas as pd
import pytest
from fev import Task

from streamridge.adapters.fev import StreamRidgeModel
from streamridge.adapters.gluonts import DECILES
from streamridge.errors import InvalidInputError
from tests.support.rolling_windows import SETTINGS, WINDOWS, H, by_hand, entries

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def task(tmp_path, monkeypatch):
    """Three windows of two roads, in one file."""
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    times = pd.date_range("2021-06-14", periods=240, freq="h")
    rows = [
        pd.DataFrame(
            {
                "id": entry["item_id"],
                "timestamp": times,
                "target": entry["target"],
                "other": entry["target"][::-1],
            }
        )
        for entry in entries()
    ]
    pd.concat(rows).to_parquet(tmp_path / "roads.parquet")
    return Task(
        dataset_path=str(tmp_path / "roads.parquet"),
        horizon=H,
        num_windows=WINDOWS,
        seasonality=24,
        eval_metric="MASE",
        extra_metrics=["SQL"],
        quantile_levels=list(DECILES),
    )


def test_windows_equal_a_forecaster_that_lives(task):
    made = StreamRidgeModel(**SETTINGS).fit_predict(task)

    own = [by_hand(entry["target"]) for entry in entries()]
    assert len(made) == WINDOWS
    for number, window in enumerate(made):
        for prediction, forecasts in zip(window["target"], own, strict=True):
            np.testing.assert_array_equal(prediction["predictions"], forecasts[number].value)
            np.testing.assert_array_equal(prediction["0.1"], forecasts[number].lower[:, 3])
            np.testing.assert_array_equal(prediction["0.9"], forecasts[number].upper[:, 3])


def test_fev_scores_the_predictions(task):
    model = StreamRidgeModel(**SETTINGS)

    summary = task.evaluation_summary(
        model.fit_predict(task), model_name="streamridge", inference_time_s=model.inference_time
    )

    mase = []
    for entry in entries():
        for number, forecast in enumerate(by_hand(entry["target"])):
            cut = 240 - (WINDOWS - number) * H
            past, actual = entry["target"][:cut], entry["target"][cut : cut + H]
            scale = np.abs(past[24:] - past[:-24]).mean()
            mase.append(np.abs(actual - forecast.value).mean() / scale)
    np.testing.assert_allclose(summary["MASE"], np.mean(mase))
    assert 0 < summary["SQL"] < summary["MASE"] * 2


def test_several_targets_are_forecast_separately(task):
    both = Task(**{**task.to_dict(), "target": ["target", "other"], "num_windows": 1})

    made = StreamRidgeModel(**SETTINGS).fit_predict(both)

    assert set(made[0]) == {"target", "other"}
    assert both.evaluation_summary(made, model_name="streamridge")["MASE"] > 0


def test_business_days_are_refused(task, tmp_path):
    days = pd.bdate_range("2020-01-01", periods=240)
    rows = pd.DataFrame({"id": "road", "timestamp": days, "target": np.arange(240.0) % 5})
    rows.to_parquet(tmp_path / "days.parquet")
    daily = Task(**{**task.to_dict(), "dataset_path": str(tmp_path / "days.parquet")})

    with pytest.raises(InvalidInputError, match="road: the index must have a row for each step"):
        StreamRidgeModel(**SETTINGS).fit_predict(daily)


def test_bad_settings_are_value_errors(task):
    with pytest.raises(ValueError, match="train_size must be a whole number"):
        StreamRidgeModel(train_size=0).fit_predict(task)
