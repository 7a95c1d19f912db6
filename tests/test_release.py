"""What is published agrees with the source tree."""

import json
import re
import tomllib
from hashlib import sha256

import pytest
import yaml

import streamridge
from tests.support.paths import ROOT

VENDOR = ROOT / "src" / "streamridge_service" / "page" / "vendor" / "uplot"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_citation_names_the_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == streamridge.__version__


@pytest.mark.parametrize("folder", [".ci", ".github", "docs", "tests"])
def test_the_source_archive_holds_what_the_tests_read(folder):
    include = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]

    assert f"/{folder}" in include
    assert (ROOT / folder).is_dir()


def test_the_bill_of_materials_lists_the_vendored_files():
    (path,) = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["sbom-files"]
    (uplot,) = json.loads((ROOT / path).read_text())["components"]

    listed = {each["name"]: each["hashes"][0]["content"] for each in uplot["components"]}
    files = [*VENDOR.glob("*.js"), *VENDOR.glob("*.css")]
    assert listed == {file.name: sha256(file.read_bytes()).hexdigest() for file in files}
    assert f"# uPlot {uplot['version']}\n" in (VENDOR / "README.md").read_text()
    assert uplot["purl"].endswith(f"@{uplot['version']}")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(workflow):
    used = re.findall(r"uses: (.*)", workflow.read_text())

    assert used
    for action in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", action), action


def test_the_workflow_tries_every_python_of_the_classifiers():
    classifiers = PROJECT["project"]["classifiers"]
    versions = re.findall(r"Python :: (3\.\d+)$", "\n".join(classifiers), flags=re.MULTILINE)
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())

    assert workflow["jobs"]["check"]["strategy"]["matrix"]["python"] == versions
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
