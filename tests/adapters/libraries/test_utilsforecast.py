"""Frames of the adapter are scored by utilsforecast."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from utilsforecast.evaluation import evaluate
from utilsforecast.losses import coverage, mae, rmse

from streamridge.adapters.frames import StreamRidge
from tests.support.long_frames import SETTINGS, H, long_frame


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas])
def test_cross_validation_is_scored(convert):
    df = convert(long_frame(np.arange(288)))
    made = StreamRidge(**SETTINGS).cross_validation(df, H, n_windows=2, level=[80])

    columns = [name for name in made.columns if name != "cutoff"]
    scores = evaluate(
        made[columns], metrics=[mae, rmse, coverage], level=[80], models=["StreamRidge"]
    )

    values = (
        scores.to_dict(as_series=False) if convert is pl.from_pandas else scores.to_dict("list")
    )
    assert values["metric"] == ["mae"] * 2 + ["rmse"] * 2 + ["coverage_level80"] * 2
    frame = made if convert is pd.DataFrame else made.to_pandas()
    errors = (frame["StreamRidge"] - frame["y"]).abs()
    by_hand = errors.groupby(frame["unique_id"]).mean()
    np.testing.assert_allclose(values["StreamRidge"][:2], by_hand)
    assert all(error < 10 for error in values["StreamRidge"][:4])
    assert all(0.5 <= share <= 1 for share in values["StreamRidge"][4:])
