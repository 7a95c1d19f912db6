"""The recipe of docs/reproduction.md that makes a file of LargeST's, run on a made one."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.support.input_files import read_readings

DOCUMENT = Path(__file__).parents[1] / "docs" / "reproduction.md"
META = """ID,Lat,Lng,District,County,Fwy,Lane,Type,Direction,ID2
716078,34.1,-118.0,7,Los Angeles,I210-E,4,Mainline,E,0
717046,34.1,-118.1,7,Los Angeles,I210-W,4,Mainline,W,1
718000,34.0,-118.2,7,Los Angeles,I10-E,5,Mainline,E,2
810001,34.1,-117.4,8,San Bernardino,I210-E,3,Mainline,E,3
"""


@pytest.fixture
def largest(tmp_path, monkeypatch):
    """Return a frame like that of LargeST, in a file of its layout beside the metadata."""
    times = pd.date_range("2017-01-01", "2017-05-18", freq="5min", inclusive="left")
    flows = np.random.default_rng(0).poisson(300, (len(times), 4)).astype(float)
    flows[7, 0] = np.nan
    columns = np.array(["716078", "717046", "718000", "810001"], dtype=object)
    frame = pd.DataFrame(flows, times, pd.Index(columns, dtype=object))
    monkeypatch.chdir(tmp_path)
    frame.to_hdf("ca_his_raw_2017.h5", key="t", mode="w")
    Path("ca_meta.csv").write_text(META)
    return frame


def test_the_documented_lines_build_a_file_of_the_papers_months(largest):
    (lines,) = re.findall(r"```py\n(.*?)```", DOCUMENT.read_text(), flags=re.DOTALL)

    exec(compile(lines, DOCUMENT.name, "exec"), {})

    found = {each.sensor: each for each in read_readings("i210.parquet")}
    assert set(found) == {"716078", "717046"}
    for name, readings in found.items():
        kept = largest.loc[:"2017-05-16", name]
        np.testing.assert_array_equal(readings.values, kept.to_numpy())
        np.testing.assert_array_equal(readings.times, kept.index.to_numpy().astype("M8[us]"))
