"""Long frames of two hourly series, with the columns of statsforecast."""

import numpy as np
import pandas as pd

H = 6
SETTINGS = {"train_size": 96}


def long_frame(hours: np.ndarray) -> pd.DataFrame:
    noise = np.random.default_rng(0).normal(0, 5, (2, 1000))
    parts = [
        pd.DataFrame(
            {
                "unique_id": name,
                "ds": pd.Timestamp("2021-06-14") + pd.to_timedelta(hours, unit="h"),
                "y": 100 + 50 * np.sin(2 * np.pi * (hours + shift) / 24) + noise[at, hours],
            }
        )
        for at, (name, shift) in enumerate({"north": 0, "south": 6}.items())
    ]
    return pd.concat(parts, ignore_index=True)
