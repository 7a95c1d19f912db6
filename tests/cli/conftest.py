import pytest


@pytest.fixture(autouse=True)
def _quick_figures(quick_figures):
    """Leave the looks of figures to tests/report and tests/plots."""
