import subprocess
import sys

import pytest

from streamridge.errors import MissingExtraError
from streamridge.plots.axes import COLORS, DASHES, line_style, log_axis, new_figure


def test_importing_the_library_loads_no_plotting_library():
    code = "import sys; from streamridge import *; print({'matplotlib', 'plotly'} & {*sys.modules})"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(MissingExtraError, match=r"matplotlib must be .* 'streamridge\[plot\]'"):
        new_figure(1)


def test_a_figure_has_the_requested_rows():
    figure = new_figure(3, width=5.0, height_per_row=2.0)

    assert len(figure.axes) == 3
    assert tuple(figure.get_size_inches()) == (5.0, 6.0)


def test_methods_have_different_colours():
    assert len(set(COLORS)) == len(COLORS) == 8


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([1.5, 60.0], ["2", "5", "10", "20", "50"]),
        ([2e-5, 3e-4], ["0.00002", "0.00005", "0.0001", "0.0002"]),
        ([1.0, 1e6], ["1", "100", "10000", "1000000"]),
    ],
)
@pytest.mark.parametrize("name", ["x", "y"])
def test_logarithmic_axes_have_plain_numbers(name, values, labels):
    figure = new_figure(1)
    (axes,) = figure.axes
    axes.plot(values, values)
    axes.margins(0)
    log_axis(axes, name)
    figure.canvas.draw()

    axis = getattr(axes, f"{name}axis")
    low, high = axis.get_view_interval()
    shown = [
        text.get_text()
        for text, at in zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=True)
        if low <= at <= high
    ]
    assert set(labels) <= set(shown)
    assert axis.get_ticklabels(minor=True) == []


def test_the_styles_of_lines_differ_until_all_are_used():
    looks = {tuple(line_style(i).values()) for i in range(len(COLORS) * len(DASHES))}

    assert len(looks) == 32
