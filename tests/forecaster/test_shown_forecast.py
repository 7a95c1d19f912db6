"""A forecast shows itself: as one line, as a table, and as a figure."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from streamridge import Forecaster
from streamridge.files.written_files import DRAWN_BY, is_figure
from tests.support.forecasters import DAY, daily, hours, live, small


@pytest.fixture(scope="module")
def forecaster():
    made = small(sensor="ramp $1", horizon=30, update_every=30, level=(0.5, 0.9))
    values = daily(4 * DAY)
    values[90] = np.nan
    live(made, values)
    return made


def test_the_text_is_one_short_line(forecaster):
    assert repr(forecaster.predict()) == (
        "Forecast(sensor='ramp $1', source='model', horizon=30, first='2021-06-17T00:00:00', "
        "last='2021-06-18T05:00:00')"
    )
    one = Forecaster("1h")
    one.observe("2021-06-13T00:00", 12.5)
    assert "time='2021-06-13T01:00:00', value=12.5, lower=" in repr(one.predict())
    assert "source='none'" in repr(Forecaster("1h", horizon=2).predict())


def test_a_notebook_shows_a_table_with_the_first_and_the_last_rows(forecaster):
    table = forecaster.predict()._repr_html_()

    assert table.startswith("<table><tr><th>time</th><th>value</th><th>lower_50</th>")
    assert table.count("<tr>") == 1 + 8 + 1 + 8
    assert "2021-06-18T05:00:00" in table


def test_the_figure_has_the_readings_before_the_forecast(forecaster):
    forecast = forecaster.predict()

    (axes,) = forecast.plot("vehicles").axes

    lines = {line.get_label(): line.get_data() for line in axes.get_lines()}
    np.testing.assert_array_equal(lines["forecast"][0], forecast.time)
    times, values = lines["actual"]
    assert times[-1] == np.datetime64(hours(0, 4 * DAY)[-1])
    assert np.isnan(values).sum() == 1  # a gap is no line
    np.testing.assert_array_equal(values[-3:], daily(4 * DAY)[-3:])
    assert axes.get_ylabel() == "vehicles"
    assert r"ramp \$1: the next 30 steps" in axes.get_title()


def test_a_single_step_and_an_index_can_be_drawn():
    forecaster = Forecaster(1)
    for at in range(5):
        forecaster.observe(at, float(at))

    (axes,) = forecaster.predict().plot().axes

    assert "the next step" in axes.get_title()
    assert axes.get_lines()[-1].get_xdata().tolist() == [5]


def test_a_forecast_before_the_first_reading_has_no_readings_to_draw():
    assert Forecaster("1h", horizon=2).predict().recent is None


def test_figures_say_which_program_drew_them(tmp_path):
    Figure((1, 1)).savefig(tmp_path / "own.png", metadata={"Software": DRAWN_BY})
    Figure((1, 1)).savefig(tmp_path / "other.png")

    assert is_figure(tmp_path / "own.png")
    assert not is_figure(tmp_path / "other.png")
