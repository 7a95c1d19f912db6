"""The environment has the libraries that docs/adapters.md names, not older releases."""

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "adapters.md").read_text()
TESTED = dict(
    re.findall(r"^\| `streamridge\.adapters\.\w+` .*\| ([\w-]+) ([\d.]+) \|$", PAGE, re.M)
)


def test_the_page_names_a_version_for_each_adapter():
    assert set(TESTED) == {"fev", "gluonts", "river", "scikit-learn", "sktime", "utilsforecast"}


@pytest.mark.parametrize(("package", "tested"), TESTED.items())
def test_the_version_is_the_tested_one(package, tested):
    assert version(package).split(".")[:2] == tested.split(".")[:2]  # patch releases may be newer


@pytest.mark.parametrize("package", ["torch", "mxnet", "lightning"])
def test_no_deep_learning_library_is_installed(package):
    with pytest.raises(PackageNotFoundError):
        version(package)
