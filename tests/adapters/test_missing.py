"""Without its library, an adapter says what to install."""

import sys
from importlib import import_module

import pytest

from streamridge.errors import MissingExtraError


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
