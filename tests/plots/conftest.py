import pytest

from streamridge.plots.axes import new_figure


@pytest.fixture
def axes():
    return new_figure(1).axes[0]
