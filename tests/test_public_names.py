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
def test_no_name_of_a_package_hides_one_of_its_modules(name):
    package = importlib.import_module(name)

    for module in pkgutil.iter_modules(package.__path__):
        imported = importlib.import_module(f"{name}.{module.name}")
        assert getattr(package, module.name) is imported, f"{name}.{module.name}"
