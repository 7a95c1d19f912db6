import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from streamridge.errors import InvalidInputError
from streamridge.files.names import FileNames
from streamridge.forecaster.methods import METHODS
from streamridge.forecaster.self_tuning import HyperparameterPath
from streamridge.hyperparameters.groups import GroupNames
from streamridge.learners.costs import Costs
from streamridge.plots.axes import method_look
from streamridge.report import write_report
from streamridge.report.charts import (
    coverage_figure,
    forecast_figure,
    hours_figure,
    rmse_figure,
)
from streamridge.report.experts import trust_figure
from streamridge.report.images import drawable
from streamridge.report.markup import panel
from streamridge.report.page import overview, section
from streamridge.report.sensors import by_sensor, moves_of
from streamridge.report.tuning import others_figure, scales_figure, weights_figure
from streamridge.runs.expert_path import ExpertPath
from streamridge.runs.run import Run

HOSTILE = "<script>alert(1)</script>"
WEIGHTS = ("weight.matern", "weight.linear")
SCALES = ("matern.inverse_scales[0]", "matern.inverse_scales[1]")
OTHERS = ("drifting.rate", "regularization")
NAMES = (*WEIGHTS, *SCALES, *OTHERS)
GROUPS = (
    GroupNames("weight", "weight", WEIGHTS),
    GroupNames("matern.inverse_scales", "scale", SCALES),
    GroupNames("drifting.rate", "rate", OTHERS[:1]),
    GroupNames("regularization", "ridge", OTHERS[1:]),
)
DAY = 24


def make_run(*, sensor="ramp-7", method="ohl", days=40, horizon=1, seed=0, **parts):
    """Return a run of random values by the hour, with a gap of two steps before its end."""
    rng, steps = np.random.default_rng(seed), days * DAY
    times = np.datetime64("2021-06-13T00:00", "us") + np.arange(steps) * np.timedelta64(1, "h")
    actual = 100 + rng.normal(0, 10, steps)
    actual[-5:-3] = np.nan
    value = np.full((steps, horizon), 100.0) + rng.normal(0, 1, (steps, horizon))
    weight = rng.uniform(0.2, 0.8, days + 1)
    values = np.column_stack([weight, 1 - weight, 10 ** rng.normal(size=(days + 1, 4))])
    run = Run(
        sensor=sensor,
        method=method,
        step=np.timedelta64(1, "h"),
        times=times,
        local_times=times,
        actual=actual,
        value=value,
        lower=value - 15,
        upper=value + 15,
        by_model=np.ones(steps, dtype=bool),
        lived=steps + 3 * DAY,
        path=HyperparameterPath(np.arange(days + 1) * DAY, GROUPS, values),
        refit_times=times[0] + np.arange(days + 1) * np.timedelta64(1, "D"),
        hyperparameters=dict(zip(NAMES, values[-1].tolist(), strict=True)),
        active_bounds={"drifting.rate": "lower", "matern.inverse_scales[1]": "upper"},
        costs=Costs(tuning=1.0, fitting=2.0, predicting=0.5),
        seconds=4.5,
        counts={"readings": steps, "missing": 2, "conflicts": 3, "fits": days},
        level=0.9,
    )
    return replace(run, **parts)


def fixed_run(**parts):
    """Return a run whose hyperparameters stay where they are."""
    run = make_run(method="fixed", seed=1, active_bounds={}, **parts)
    still = np.repeat(run.path.values[:1], len(run.path.values), axis=0)
    return replace(run, path=replace(run.path, values=still))


def only(*runs):
    (sensor,) = by_sensor(runs)
    return sensor


def words(html):
    """Return the text of a page with one space between words."""
    return " ".join(Reader.of(html).text.split())


class Reader(HTMLParser):
    """Reads a page as a browser does."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.text = [], [], [], ""
        self._inside = ""

    @classmethod
    def of(cls, html):
        reader = cls()
        reader.feed(html)
        reader.close()
        return reader

    def handle_starttag(self, tag, attrs):
        self._inside = tag
        self.tags.append(tag)
        self.attributes += attrs
        self.scripts += [(dict(attrs).get("type"), "")] if tag == "script" else []

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            kind, before = self.scripts[-1]
            self.scripts[-1] = (kind, before + data)
        elif self._inside != "style":
            self.text += data

    @property
    def figures(self):
        return [json.loads(text) for kind, text in self.scripts if kind == "application/json"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "new"
    runs = [make_run(sensor=HOSTILE), fixed_run(sensor=HOSTILE), make_run(sensor="ramp-7")]
    path = write_report(runs, folder, title=f"Roads {HOSTILE}", unit="<b>vehicles</b>")
    assert path == folder / "index.html"
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return Reader.of((folder / "index.html").read_text(encoding="utf-8"))


def test_the_page_refers_to_nothing_beyond_its_folder(page, folder):
    addresses = [value for name, value in page.attributes if name in ("src", "href")]
    beside = {each.name for each in folder.iterdir()}

    assert "link" not in page.tags
    assert not [each for each in addresses if re.match(r"(\w+:|//)", each)]
    assert {each for each in addresses if not each.startswith("#")} == beside - {"index.html"}


def test_the_page_forbids_itself_to_fetch_anything(page):
    policy = next(value for name, value in page.attributes if value and "default-src" in value)

    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_the_script_that_draws_is_in_the_page_once(page):
    assert sum("plotly.js v" in text[:200] for _, text in page.scripts) == 1
    assert not [name for name, _ in page.attributes if name == "integrity"]


def test_no_button_sends_a_figure_away():
    script = files("streamridge.report").joinpath("page.js").read_text(encoding="utf-8")

    assert "modeBarButtons: [buttons]" in script
    assert "cloud" not in script.lower()
    assert "displaylogo: false" in script


def test_names_from_outside_are_text_and_never_markup(page):
    run_here = [text for kind, text in page.scripts if kind is None]

    assert len(run_here) == 2
    assert not [text for text in run_here if text.strip() == "alert(1)"]
    assert page.text.count(HOSTILE) >= 4
    assert "b" not in page.tags


def test_names_in_figures_are_escaped_too(page):
    texts = json.dumps(page.figures)

    assert "&lt;b&gt;vehicles" in texts
    assert "<b>" not in texts


def test_a_name_cannot_end_the_data_of_a_figure():
    html = section(1, only(make_run(method="</script><script>alert(1)")), [])

    assert len(Reader.of(html).scripts) == html.count('<script type="application/json">')


def test_the_data_of_a_figure_are_escaped_whatever_the_library_does():
    figure = SimpleNamespace(layout=SimpleNamespace(height=1), to_json=lambda: '["</script>"]')

    assert Reader.of(panel("caption", figure)).figures == [["</script>"]]


def test_every_interactive_figure_labels_its_axes(page):
    axes = [
        axis
        for figure in page.figures
        for name, axis in figure["layout"].items()
        if re.match(r"[xy]axis", name)
    ]

    assert len(page.figures) == 7 + 3 + 7 + 3
    assert all(axis["title"]["text"] for axis in axes)


def test_png_files_are_written_and_not_blank(folder):
    images = sorted(folder.glob("*.png"))

    assert len(images) == 5 + 5
    assert all(imread(path)[..., :3].std() > 0.02 for path in images)


def test_file_names_are_safe(folder):
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", path.name) for path in folder.iterdir())


@given(st.lists(st.text(max_size=100)))
def test_file_names_of_any_text_are_safe_and_differ_even_without_capitals(texts):
    names = FileNames()

    taken = [names.take(text, ".png") for text in texts]

    assert len({name.lower() for name in taken}) == len(texts)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*\.png", name) for name in taken)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidInputError, match="report must be a folder that can be written"):
        write_report([make_run(days=2)], tmp_path / "file" / "folder", title="Roads")


def test_a_report_of_nothing_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="runs must hold at least one run, got none"):
        write_report([], tmp_path, title="Roads")


def test_the_summary_holds_every_run_and_its_change_against_fixed():
    sensor = only(make_run(), fixed_run())
    ours, fixed = sensor.runs

    text = words(overview("Roads", [sensor]))

    change = f"{100 * (ours.rmse / fixed.rmse - 1):+.1f} %".replace("-", "\N{MINUS SIGN}")
    assert f"RMSE against fixed: ohl {change}" in text
    assert f"{ours.rmse:#.4g}" in text
    assert f"{fixed.rmse:#.4g}" in text


def test_without_fixed_nothing_is_held_against_it():
    assert "against fixed" not in words(overview("Roads", [only(make_run())]))


def test_there_is_a_table_of_contents_for_several_sensors_only():
    one, two = by_sensor([make_run(sensor="a"), make_run(sensor="b")])

    assert "<nav" not in overview("Roads", [one])
    assert '<a href="#sensor-2">b</a></li>' in overview("Roads", [one, two])


def test_what_was_filled_or_in_conflict_is_told_in_words():
    text = words(section(1, only(make_run()), []))

    assert "steps without a reading, filled by forecasts and not trained on: 2;" in text.lower()
    assert "of which the first is kept: 3." in text


def test_counts_that_differ_by_method_are_told_for_each():
    text = words(section(1, only(make_run(counts={"outlier": 2}), fixed_run(counts={})), []))

    assert "Outliers, not learned from: 2 (ohl), 0 (fixed)." in text


def test_a_clean_series_is_said_to_be_clean():
    text = words(section(1, only(make_run(counts={"readings": 960, "fits": 40})), []))

    assert "960 readings. Nothing was dropped, filled or in conflict." in text


def test_forecasts_of_the_season_before_are_counted():
    run = make_run()
    seasonal = np.arange(len(run.times)) >= 7

    text = words(section(1, only(replace(run, by_model=seasonal)), []))

    assert "no model could be used: 7." in text


def test_a_run_that_was_stopped_is_said_to_be():
    assert "ohl was stopped before its end." in words(
        section(1, only(make_run(interrupted=True)), [])
    )


def test_runs_over_different_steps_come_with_a_warning():
    sensor = only(make_run(), fixed_run(days=30))

    assert "scored on different steps" in words(section(1, sensor, []))


def test_several_horizons_have_an_error_each():
    text = words(section(1, only(make_run(horizon=3)), []))

    assert "Scores by steps aheadsteps aheadmethodRMSEagainst weekMAEcoverage" in text
    assert re.search(r"coverage1ohl[\d.]+.*2ohl[\d.]+.*3ohl[\d.]+", text)


def test_gaps_are_shaded_in_the_forecast_figure():
    figure = forecast_figure(only(make_run()))

    (gap,) = figure.layout.shapes
    assert (gap.x0, gap.x1) == ("2021-07-22T18:30:00", "2021-07-22T20:30:00")
    assert "no reading" in [trace.name for trace in figure.data]


def test_the_forecast_figure_holds_four_weeks_at_most():
    figure = forecast_figure(only(make_run(days=40)))

    assert {len(trace.y) for trace in figure.data if trace.mode == "lines"} == {28 * DAY}


def test_the_forecast_figure_shows_one_method_until_another_is_asked_for():
    figure = forecast_figure(only(fixed_run(), make_run()))

    shown = {trace.legendgroup for trace in figure.data if trace.visible is True}
    assert shown == {"ohl"}


def test_the_level_is_a_line_in_the_coverage_figure():
    figure = coverage_figure(only(make_run()))

    assert figure.data[-1].name == "level 0.9"
    assert set(figure.data[-1].y) == {0.9}


def two_levels(**parts):
    """Return a run with bands of 80 % and 95 %."""
    run = make_run(**parts)
    reach = np.array([12.0, 20.0])
    ends = {"lower": run.value[..., None] - reach, "upper": run.value[..., None] + reach}
    return replace(run, level=(0.8, 0.95), **ends)


def test_every_level_has_a_band_the_widest_below():
    figure = forecast_figure(only(two_levels()))

    filled = [trace for trace in figure.data if trace.fill == "tonexty"]
    assert [trace.name for trace in filled] == ["95% band, lower end", "80% band, lower end"]
    assert "ohl, forecast and bands of 80% and 95%" in [trace.name for trace in figure.data]


def test_every_level_has_its_coverage_in_the_table_and_the_figure():
    sensor = only(two_levels())
    (run,) = sensor.runs

    text = words(overview("Roads", [sensor]))
    names = [trace.name for trace in coverage_figure(sensor).data]

    assert "Bands of 80% and 95%." in text
    assert "coverage, 80%coverage, 95%scored" in text
    for share in run.coverages.values():
        assert f"{100 * share:.1f} %" in text
    assert names == ["ohl, 80%", "ohl, 95%", "level 0.8", "level 0.95"]


def test_runs_of_different_levels_share_a_table():
    text = words(overview("Roads", [only(two_levels(), fixed_run())]))

    assert "coverage, 80%coverage, 95%coverage, 90%scored" in text


def test_hyperparameters_at_a_bound_are_marked_wherever_they_are_shown():
    moves = moves_of(make_run(active_bounds=dict.fromkeys(NAMES, "upper")))

    shown = [
        *(trace.name for trace in weights_figure(moves, WEIGHTS).data),
        *scales_figure(moves, SCALES, ("a", "b")).layout.yaxis.ticktext,
        others_figure(moves, OTHERS).layout.yaxis2.title.text,
    ]
    assert len(shown) == 5
    assert all(label.endswith("\N{BLACK UP-POINTING TRIANGLE}") for label in shown)


def test_features_have_the_names_they_are_given():
    html = section(1, only(make_run()), [], feature_names=["lag 1", "lag 2"])

    assert any("lag 1" in json.dumps(figure) for figure in Reader.of(html).figures)


def test_every_other_hyperparameter_has_a_logarithmic_axis_of_its_own():
    layout = others_figure(moves_of(make_run()), OTHERS).layout

    assert (layout.yaxis.type, layout.yaxis2.type) == ("log", "log")


def test_hyperparameters_that_never_moved_are_named_and_not_drawn():
    html = section(1, only(fixed_run()), [])

    assert "Methods whose hyperparameters did not move: fixed." in words(html)
    assert len(Reader.of(html).figures) == 7


def trusting_run(count=5, **parts):
    """Return a run that trusts its model less day by day."""
    share = np.linspace(1.0, 0.5, count)
    run = make_run(days=5)
    path = ExpertPath(
        run.times[: count * DAY : DAY], ("model", "8h"), np.column_stack([share, 1 - share])
    )
    return replace(run, expert_path=path, **parts)


def test_who_is_trusted_is_drawn_as_shares_that_sum_to_one():
    figure = trust_figure(trusting_run())

    assert [trace.name for trace in figure.data] == ["model", "8h ago"]
    assert [trace.stackgroup for trace in figure.data] == ["shares"] * 2
    np.testing.assert_allclose(np.sum([trace.y for trace in figure.data], axis=0), 1.0)


def test_who_is_trusted_stands_beside_the_path_of_the_hyperparameters():
    html = section(1, only(trusting_run(), fixed_run(days=5)), [])

    text = words(html)
    assert "Who is trusted (ohl)How much of each forecast comes from the model" in text
    assert text.index("Hyperparameters of ohl") < text.index("Who is trusted (ohl)")
    assert "Who is trusted (fixed)" not in text


@pytest.mark.parametrize("count", [0, 1])
def test_without_a_course_of_trust_nothing_is_drawn(count):
    assert "Who is trusted" not in words(section(1, only(trusting_run(count)), []))


def test_who_is_trusted_has_a_png_file(tmp_path):
    write_report([trusting_run(path=None)], tmp_path, title="Roads")

    assert imread(tmp_path / "ramp-7-experts-ohl.png")[..., :3].std() > 0.02


@pytest.mark.parametrize("steps", [0, 1, 2, 30])
def test_a_run_of_any_length_has_a_report(steps, tmp_path):
    run = fixed_run()
    parts = {
        name: getattr(run, name)[:steps]
        for name in ("times", "local_times", "actual", "value", "lower", "upper", "by_model")
    }

    path = write_report([replace(run, **parts)], tmp_path, title="Roads")

    assert ("No step was scored." in path.read_text(encoding="utf-8")) == (steps == 0)


def test_a_run_without_a_reading_or_a_model_has_a_report(tmp_path):
    run = make_run(days=3)
    blank = replace(run, actual=np.full(72, np.nan), path=None, refit_times=run.times[:0])

    path = write_report([blank], tmp_path, title="Roads")

    assert [each.name for each in tmp_path.glob("*.png")] == ["ramp-7-costs.png"]
    assert "No step was scored." in path.read_text(encoding="utf-8")


def test_two_runs_of_the_same_method_are_both_kept():
    sensor = only(make_run(), make_run(seed=1))

    assert [run.method for run in sensor.runs] == ["ohl", "ohl (2)"]


def test_titles_hold_what_the_font_can_draw():
    assert drawable("Stra\N{LATIN SMALL LETTER SHARP S}e \N{CJK UNIFIED IDEOGRAPH-54C8} $") == (
        "Stra\N{LATIN SMALL LETTER SHARP S}e ? \\$"
    )


def glitched(**parts):
    """Return a run with a reading that no road can have, and with forecasts that need no model."""
    run = make_run(**parts)
    actual = run.actual.copy()
    actual[-30] = 9e11
    naive = {name: np.full_like(run.value, level) for name, level in YARDSTICKS.items()}
    return replace(run, actual=actual, implausible=actual > 1e6, yardsticks=naive)


YARDSTICKS = {"last": 90.0, "week": 80.0}


def test_a_glitch_is_scored_apart_and_the_plain_figure_is_said():
    sensors = by_sensor([glitched()])

    table, text = words(overview("t", sensors)), words(section(1, sensors[0], []))

    assert re.search(r"ohl\d+\.\d+\*", table)
    assert "* Without implausible readings" in table
    assert "scored apart: 1. With them, the plain RMSE is 2.9" in text
    assert "Triangles at the edge stand for 1 reading far beyond it." in text


def test_without_a_glitch_nothing_is_marked():
    sensors = by_sensor([make_run()])

    assert "*" not in words(overview("t", sensors))
    assert "scored apart" not in words(section(1, sensors[0], []))


def test_the_figure_shows_the_bulk_and_a_triangle_for_a_glitch():
    run = glitched()

    figure = forecast_figure(only(run))

    low, high = figure.layout.yaxis.range
    actual = next(trace for trace in figure.data if trace.name == "actual")
    (mark,) = [trace for trace in figure.data if trace.name == "beyond the top"]
    assert 0 < low < high < 200
    assert np.nanmax(actual.y) < 200
    assert (mark.marker.symbol, list(mark.customdata)) == ("triangle-up", [9e11])
    assert low < mark.y[0] <= high


def test_forecasts_without_a_model_are_always_shown_beside_the_others():
    sensors = by_sensor([glitched(), glitched(method="fixed")])

    text = words(overview("t", sensors))

    assert [run.method for run in sensors[0].runs] == ["ohl", "fixed", "last", "week"]
    assert sensors[0].lead.method == "ohl"
    for method in ("last", "week"):
        assert re.search(rf"ramp-7{method}\d", text)
    assert "RMSE against the same time a week ago: ohl " in text


def test_a_method_has_one_colour_in_every_figure_whatever_is_beside_it():
    alone, beside = only(glitched()), only(fixed_run(), glitched())

    figures = [figure(runs) for runs in (alone, beside) for figure in (rmse_figure, hours_figure)]

    colors = {
        (trace.line.color if trace.type == "scatter" else trace.marker.color)
        for figure in figures
        for trace in figure.data
        if trace.name == "ohl"
    }
    assert colors == {method_look("ohl")[0]}
    assert len({method_look(name) for name in METHODS}) == len(METHODS)


def test_a_phone_sees_no_column_that_it_has_no_room_for():
    html = overview("t", by_sensor([glitched()]))

    hidden = re.findall(r'<th class="more">([^<]*)', html)
    assert hidden == ["MAE", "scored", "missing", "fits", "seconds"]
    assert html.count('<td class="more">') == 3 * len(hidden)
    assert "A wider screen shows more: MAE, scored, missing, fits, seconds." in words(html)


def test_the_season_ago_is_not_held_against_itself():
    rows = re.findall(r"<tr.*?</tr>", overview("t", by_sensor([glitched()])))

    (week,) = [row for row in rows if ">week<" in row]
    assert words(week).count("\N{EN DASH}") == 2  # no coverage either


def test_without_a_season_errors_are_held_against_the_last_reading():
    run = glitched()
    run = replace(run, yardsticks={"last": run.yardsticks["last"]})

    text = words(overview("t", by_sensor([run])))

    assert "RMSE against the last reading: ohl " in text
    assert "against last" in text
    assert "against week" not in text


def test_a_second_run_of_a_yardstick_needs_no_model_either():
    run = glitched()

    (sensor,) = by_sensor([run, run.yardstick("last"), run.yardstick("last")])

    assert [each.method for each in sensor.modelled] == ["ohl"]
    assert "since no model could be used" not in words(section(1, sensor, []))


def test_a_yardstick_is_not_said_to_have_been_stopped():
    text = words(section(1, only(replace(glitched(), interrupted=True)), []))

    assert text.count("was stopped before its end.") == 1
