"""Files of deploy/ that several tests read."""

import json

import yaml

from tests.support.paths import DEPLOY


def loaded(path):
    text = path.read_text()
    # JSON is YAML as well, but the reader of YAML takes half a second for the dashboard.
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)


def rules_of_prometheus():
    (group,) = loaded(DEPLOY / "prometheus/alerts.yml")["groups"]
    return group["rules"]
