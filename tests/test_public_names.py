import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import streamridge
from streamridge import errors

PACKAGES = [
    streamridge.__name__,
    *(
        module.name
        for module in pkgutil.walk_packages(streamridge.__path__, f"{streamridge.__name__}.")
        if module.ispkg and module.name != "streamridge.adapters"  # named after other libraries
    ),
]


@pytest.mark.parametrize("name", PACKAGES)
def test_no_public_name_hides_a_module(name):
    package = importlib.import_module(name)

    for module in pkgutil.iter_modules(package.__path__):
        imported = importlib.import_module(f"{name}.{module.name}")
        assert getattr(package, module.name) is imported, f"{name}.{module.name}"


def names_of_type_checkers():
    """Return the full name of each public name as the import statements of the package say it."""
    tree = ast.parse(Path(streamridge.__file__).read_text())
    statements = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)]
    return {
        alias.name: f"{each.module}.{alias.name}"
        for each in statements
        if each.module.startswith("streamridge")
        for alias in each.names
    }


def test_every_public_name_is_declared_for_type_checkers():
    assert sorted(names_of_type_checkers()) == sorted(streamridge.__all__)


@pytest.mark.parametrize("name", sorted(set(streamridge.__all__) - set(vars(errors))))
def test_a_name_is_at_its_first_use_the_one_that_type_checkers_see(name, monkeypatch):
    module, _, attribute = names_of_type_checkers()[name].rpartition(".")
    declared = getattr(importlib.import_module(module), attribute)
    monkeypatch.delitem(vars(streamridge), name, raising=False)

    assert getattr(streamridge, name) is declared


def test_all_public_names_are_listed():
    assert set(dir(streamridge)) >= set(streamridge.__all__)


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="'streamridge' has no attribute 'Forecastr'"):
        _ = streamridge.Forecastr


def test_the_import_of_the_package_loads_no_other_library():
    code = "import streamridge, sys; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert loaded.stderr == ""
    roots = {name.partition(".")[0] for name in loaded.stdout.split()}
    assert "streamridge" in roots
    assert not roots & {"numpy", "scipy", "narwhals", "typer", "rich", "threadpoolctl"}
