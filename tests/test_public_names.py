import importlib
import pkgutil

import pytest

import streamridge

PACKAGES = [
    streamridge.__name__,
    *(
        module.name
        for module in pkgutil.walk_packages(streamridge.__path__, f"{streamridge.__name__}.")
        if module.ispkg
    ),
]


@pytest.mark.parametrize("name", PACKAGES)
def test_no_public_name_hides_a_module(name):
    package = importlib.import_module(name)

    for module in pkgutil.iter_modules(package.__path__):
        imported = importlib.import_module(f"{name}.{module.name}")
        assert getattr(package, module.name) is imported, f"{name}.{module.name}"
