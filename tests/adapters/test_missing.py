"""Every adapter names its library if it is missing, and has its place in the reference."""

import re
import sys
from importlib import import_module

import pytest

from streamridge.errors import MissingExtraError
from tests.support.paths import ROOT


@pytest.mark.parametrize(
    ("module", "library", "package"),
    [
        ("fev", "fev", "fev"),
        ("gluonts", "gluonts", "gluonts"),
        ("river", "river", "river"),
        ("sklearn", "sklearn", "scikit-learn"),
        ("sktime", "sktime", "sktime"),
    ],
)
def test_a_missing_library_is_named(module, library, package, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, f"streamridge.adapters.{module}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(MissingExtraError, match=f"Run `pip install {package}`"):
        import_module(f"streamridge.adapters.{module}")


def test_every_class_is_in_the_reference():
    page = (ROOT / "docs" / "reference" / "adapters.md").read_text()
    classes = {
        f"::: streamridge.adapters.{path.stem}.{name}"
        for path in (ROOT / "src" / "streamridge" / "adapters").glob("*.py")
        for name in re.findall(r"^class (\w+)", path.read_text(), re.M)
    }

    assert set(re.findall(r"^:::.*", page, re.M)) == classes - {
        "::: streamridge.adapters.sensors.Sensors"  # shared by adapters, not by users
    }
