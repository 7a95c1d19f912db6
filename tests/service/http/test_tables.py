"""Rows as JSON, CSV and Parquet, without formulas for spreadsheets."""

import csv
import io

import pyarrow.parquet as pq
import pytest

from streamridge_service.http.responses import to_csv

PATHS = ["/v1/sensors", "/v1/forecasts", "/v1/sensors/north/forecasts", "/v1/sensors/north/history"]
STARTS = ("=", "+", "-", "@", "\t", "\r")
FORMULAS = (
    "1+1",
    "cmd|' /C calc'!A0",
    'HYPERLINK("http://evil")',
    "SUM(A1:A9)",
    "",
    "2",
    "x;y",
    "a,b",
    '"',
    "'",
)


def rows(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("path", PATHS)
class TestFormats:
    def test_the_parameter_and_the_header_give_the_same_format(self, live, path):
        for name, media in (("csv", "text/csv"), ("parquet", "application/vnd.apache.parquet")):
            asked = live.client.get(path, params={"format": name})
            accepted = live.client.get(path, headers={"Accept": media})

            assert asked.headers["content-type"].partition(";")[0] == media
            assert asked.content == accepted.content

    def test_all_formats_have_the_same_rows(self, live, path):
        told = live.client.get(path).json()["items"]
        table = pq.read_table(
            io.BytesIO(live.client.get(path, params={"format": "parquet"}).content)
        )
        lines = rows(live.client.get(path, params={"format": "csv"}).text)

        assert len(told) == table.num_rows == len(lines)
        name = next(each for each in ("time", "id") if each in told[0])
        assert [row[name] for row in told] == table[name].to_pylist()
        assert [row[name] or "" for row in told] == [line[name] for line in lines]

    @pytest.mark.parametrize(
        "accept", ["text/html", "application/xml;q=0.5", "image/*", "x", "application/json;q=inf"]
    )
    def test_types_that_are_not_offered_are_refused(self, live, path, accept):
        answer = live.client.get(path, headers={"Accept": accept})

        if accept.endswith("inf"):
            assert answer.status_code in (200, 406)
        else:
            assert (answer.status_code, answer.json()["code"]) == (406, "sr-not-acceptable")
            assert "text/csv" in answer.json()["offered"]

    @pytest.mark.parametrize("accept", ["*/*", "", "text/*", "application/json, text/csv;q=0.1"])
    def test_the_preferred_type_of_the_header_is_returned(self, live, path, accept):
        answer = live.client.get(path, headers={"Accept": accept})

        wanted = "text/csv" if accept == "text/*" else "application/json"
        assert answer.headers["content-type"].partition(";")[0] == wanted


def test_no_cell_of_a_csv_is_read_as_a_formula(live, counted):
    labels = [start + formula for start in STARTS for formula in FORMULAS]
    answers = [
        live.client.put(f"/v1/sensors/formula-{i}", json={"label": label}).status_code
        for i, label in enumerate(labels)
    ]
    accepted = [label for label, status in zip(labels, answers, strict=True) if status < 300]
    counted("E9", len(labels))
    assert len(labels) >= 50
    assert len(accepted) == sum(label.isprintable() for label in labels)

    for path in ("/v1/sensors", "/v1/forecasts"):
        query = {"format": "csv", "limit": 10_000}
        shown = {row["label"] for row in rows(live.client.get(path, params=query).text)}

        assert {f"'{label}" for label in accepted} <= shown
        assert not [label for label in shown if label.startswith(STARTS)]


def test_cells_that_start_with_a_tab_or_return_are_quoted():
    text = to_csv(
        [{"a": "\tx", "b": -5.0}, {"a": "\rx", "b": None}], {"a": "string", "b": "double"}
    )

    assert text == b"a,b\r\n'\tx,-5.0\r\n\"'\rx\",\r\n"


def test_negative_numbers_stay_numbers(live):
    live.client.put("/v1/sensors/south-pole", json={"position": [-90, -180]})

    [line] = rows(live.client.get("/v1/sensors", params={"q": "south-pole", "format": "csv"}).text)

    assert (line["latitude"], line["longitude"]) == ("-90.0", "-180.0")
