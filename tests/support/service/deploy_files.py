"""Files of deploy/ that several tests read."""

import yaml

from tests.support.paths import DEPLOY


def loaded(path):
    return yaml.safe_load(path.read_text())  # JSON is YAML as well


def rules_of_prometheus():
    (group,) = loaded(DEPLOY / "prometheus/alerts.yml")["groups"]
    return group["rules"]
