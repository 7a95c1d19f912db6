"""The tables of a report and the sentences about them."""

import re
from dataclasses import replace

import numpy as np

from streamridge.report.charts import (
    coverage_figure,
)
from streamridge.report.page import overview, section
from streamridge.report.sensor_runs import by_sensor
from tests.support.report_runs import (
    fixed_run,
    make_run,
    only,
    run_with_glitch,
    run_with_two_levels,
    words,
)


def test_the_summary_has_every_run_and_its_change_against_fixed():
    sensor = only(make_run(), fixed_run())
    ours, fixed = sensor.runs

    text = words(overview("Roads", [sensor]))

    change = f"{100 * (ours.rmse / fixed.rmse - 1):+.1f} %".replace("-", "\N{MINUS SIGN}")
    assert f"RMSE against fixed: ohl {change}" in text
    assert f"{ours.rmse:#.4g}" in text
    assert f"{fixed.rmse:#.4g}" in text


def test_without_fixed_there_is_no_comparison_with_it():
    assert "against fixed" not in words(overview("Roads", [only(make_run())]))


def test_counts_of_missing_and_conflicting_readings_are_described():
    text = words(section(1, only(make_run()), []))

    assert (
        "steps without a reading, filled by forecasts and not used for training: 2;" in text.lower()
    )
    assert "contradict an earlier one of the same time, dropped: 3." in text


def test_counts_that_differ_by_method_are_listed_by_method():
    text = words(section(1, only(make_run(counts={"outlier": 2}), fixed_run(counts={})), []))

    assert "Outliers, not learned from: 2 (ohl), 0 (fixed)." in text


def test_a_clean_series_has_a_sentence_of_its_own():
    text = words(section(1, only(make_run(counts={"readings": 960, "fits": 40})), []))

    assert "960 readings, scored from 2021-06-13 00:00 to 2021-07-22 23:00. Nothing was" in text


def test_naive_forecasts_are_counted_with_the_reason():
    run = make_run()
    step = np.arange(len(run.times))
    by_model = ~((step < 7) | (step >= 50))
    actual = np.where((step >= 60) & (step < 80), np.nan, 100.0)
    fitted = replace(run, by_model=by_model, actual=actual, refit_times=run.times[[6, 30]])
    unfitted = replace(run, by_model=step < 0, refit_times=run.times[:0])

    text = words(section(1, only(fitted), []))

    assert "teps before the first fit, with a naive forecast: 7; steps after a gap" in text
    assert "steps after a gap, with a naive forecast: 20; steps at which naive" in text
    preferred = len(step) - 50 - 20
    assert f"because their recent errors were smaller: {preferred:,}." in text
    assert f"before the first fit, with a naive forecast: {len(step)}." in words(
        section(1, only(unfitted), [])
    )


def test_an_interrupted_run_is_named():
    assert "ohl was interrupted." in words(section(1, only(make_run(interrupted=True)), []))


def test_runs_over_different_steps_have_a_warning():
    sensor = only(make_run(), fixed_run(days=30))

    assert "scored on different steps" in words(section(1, sensor, []))


def test_each_horizon_has_its_error():
    text = words(section(1, only(make_run(horizon=3)), []))

    assert "Scores by steps aheadsteps aheadmethodRMSEagainst weekMAEcoverage" in text
    assert re.search(r"coverage1ohl[\d.]+.*2ohl[\d.]+.*3ohl[\d.]+", text)


def test_every_level_has_its_coverage_in_the_table_and_the_figure():
    sensor = only(run_with_two_levels())
    (run,) = sensor.runs

    text = words(overview("Roads", [sensor]))
    names = [trace.name for trace in coverage_figure(sensor).data]

    assert "Intervals of 80% and 95%." in text
    assert "coverage, 80%coverage, 95%scored" in text
    for share in run.coverages.values():
        assert f"{100 * share:.1f} %" in text
    assert names == ["ohl, 80%", "ohl, 95%", "level 80%", "level 95%"]


def test_runs_of_different_levels_share_a_table():
    text = words(overview("Roads", [only(run_with_two_levels(), fixed_run())]))

    assert "coverage, 80%coverage, 95%coverage, 90%scored" in text


def test_an_implausible_reading_is_scored_separately_and_its_error_is_shown():
    sensors = by_sensor([run_with_glitch()])

    table, text = words(overview("t", sensors)), words(section(1, sensors[0], []))

    assert re.search(r"ohl\d+\.\d+\*", table)
    assert "* Without implausible readings" in table
    assert "scored separately: 1. With them, the RMSE is 2.9" in text
    assert "Triangles at the edge mark 1 reading beyond the range." in text


def test_without_implausible_readings_nothing_is_marked():
    sensors = by_sensor([make_run()])

    assert "*" not in words(overview("t", sensors))
    assert "scored separately" not in words(section(1, sensors[0], []))


def test_naive_forecasts_are_always_shown():
    sensors = by_sensor([run_with_glitch(), run_with_glitch(method="fixed")])

    text = words(overview("t", sensors))

    assert [run.method for run in sensors[0].runs] == ["ohl", "fixed", "last", "week"]
    assert sensors[0].main.method == "ohl"
    for method in ("last", "week"):
        assert re.search(rf"ramp-7{method}\d", text)
    assert "RMSE against the same time a week ago: ohl " in text


def test_a_phone_hides_less_important_columns():
    html = overview("t", by_sensor([run_with_glitch()]))

    hidden = re.findall(r'<th class="more">([^<]*)', html)
    assert hidden == ["MAE", "scored", "missing", "fits", "seconds"]
    assert html.count('<td class="more">') == 3 * len(hidden)
    assert "A wider screen shows more: MAE, scored, missing, fits, seconds." in words(html)


def test_the_naive_forecast_is_not_compared_with_itself():
    rows = re.findall(r"<tr.*?</tr>", overview("t", by_sensor([run_with_glitch()])))

    (week,) = [row for row in rows if ">week<" in row]
    assert words(week).count("\N{EN DASH}") == 2  # no coverage either


def test_without_a_season_errors_are_compared_with_the_last_reading():
    run = run_with_glitch()
    run = replace(run, naive_forecasts={"last": run.naive_forecasts["last"]})

    text = words(overview("t", by_sensor([run])))

    assert "RMSE against the last reading: ohl " in text
    assert "against last" in text
    assert "against week" not in text


def test_a_second_run_of_a_naive_forecast_needs_no_model():
    run = run_with_glitch()

    (sensor,) = by_sensor([run, run.naive_run("last"), run.naive_run("last")])

    assert [each.method for each in sensor.with_model] == ["ohl"]
    assert "naive forecast:" not in words(section(1, sensor, []))


def test_a_naive_forecast_is_not_said_to_be_interrupted():
    text = words(section(1, only(replace(run_with_glitch(), interrupted=True)), []))

    assert text.count("was interrupted.") == 1


def test_two_runs_of_the_same_method_have_different_names():
    sensor = only(make_run(), make_run(seed=1))

    assert [run.method for run in sensor.runs] == ["ohl", "ohl (2)"]
