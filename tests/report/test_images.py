"""The PNG files of a report."""

import re
from dataclasses import replace
from functools import partialmethod
from urllib.parse import unquote

import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from streamridge.plots.axes import drawable
from streamridge.report import write_report
from tests.support.figures import save_blank
from tests.support.report_runs import run_with_experts


def test_png_files_are_written_and_not_blank(folder):
    images = sorted(folder.glob("*.png"))

    assert len(images) == 5 + 5
    assert all(imread(path)[..., :3].std() > 0.02 for path in images)


def test_file_names_are_safe(folder):
    assert all(re.fullmatch(r"[A-Za-z0-9._%~-]+", path.name) for path in folder.iterdir())


@pytest.mark.usefixtures("quick_figures")
def test_images_of_any_sensor_are_linked(tmp_path):
    run = replace(run_with_experts(path=None), sensor="\u5317\u95e8 100%~")
    page = write_report([run], tmp_path, title="Roads").read_text()

    links = [unquote(each) for each in re.findall(r'href="([^"#]*\.png)"', page)]

    assert sorted(links) == sorted(path.name for path in tmp_path.glob("*.png"))


def test_weights_of_experts_have_a_png_file(tmp_path, monkeypatch):
    name = "ramp-7-experts-ohl.png"
    monkeypatch.setattr(Figure, "savefig", partialmethod(save_blank, drawn=[name]))

    write_report([run_with_experts(path=None)], tmp_path, title="Roads")

    assert imread(tmp_path / name)[..., :3].std() > 0.02


def test_characters_that_the_font_lacks_become_question_marks():
    assert drawable("Stra\N{LATIN SMALL LETTER SHARP S}e \N{CJK UNIFIED IDEOGRAPH-54C8} $") == (
        "Stra\N{LATIN SMALL LETTER SHARP S}e ? \\$"
    )
