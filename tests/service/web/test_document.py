"""The document of the interface: complete, true, and the service as strict as it says."""

import os
import re
import subprocess
import sys

import jsonschema_rs
import msgspec
import pytest

from streamridge.service.ledger.opening import open_ledger
from streamridge.service.web import guarding, tokens
from tests.service.living import settled
from tests.service.web.conftest import START, daily
from tests.service.web.live import NOW, ROOT, Live, readings
from tests.service.web.routes import all_routes

# Beyond what the fuzzer can draw by chance, so that it does not revoke its own token.
FAR_NUMBER = 8_234_567_891
SEED = int(os.environ.get("FUZZ_SEED", "3"))
# Where a request can be wrong in a way that a schema cannot tell: a row that is late or
# contradicts another, a zone that does not exist, a beginning after its end.
CONFIGURATION = """
[[operations]]
include-path-regex = "^/v1/(readings|tokens|gaps)$|^/api/v2/write$|^/v1/sensors/"
checks.positive_data_acceptance.expected-statuses = [
    "2xx", "400", "401", "403", "404", "409", "410", "415", "422", "429",
]
"""


@pytest.fixture(scope="module")
def document(live):
    return live.client.get("/openapi.json").json()


def operations(document):
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


class TestDocument:
    def test_it_has_all_routes(self, live, document):
        assert {name for name, _ in operations(document)} == set(map(str, all_routes(live)))

    def test_every_route_is_explained(self, document):
        for name, operation in operations(document):
            assert operation["summary"].endswith("."), name
            assert operation["tags"], name
            names = [each["operationId"] for _, each in operations(document)]
            assert names.count(operation["operationId"]) == 1

    def test_nothing_may_be_sent_that_is_not_named(self, document):
        for name, schema in document["components"]["schemas"].items():
            assert schema.get("additionalProperties") is False, name

    def test_every_example_is_what_it_says(self, document):
        found = list(examples(document))

        assert len(found) > 40
        for schema, example in found:
            whole = {**schema, "components": document["components"]}
            jsonschema_rs.validator_for(whole).validate(example)

    def test_every_body_and_every_answer_in_json_has_a_schema(self, document):
        for name, operation in operations(document):
            contents = [each.get("content", {}) for each in operation["responses"].values()]
            contents += [operation.get("requestBody", {}).get("content", {})]
            for content in contents:
                assert all(told["schema"] for told in content.values()), name

    def test_people_can_read_it_without_any_script(self, live, document):
        page = live.client.get("/docs")

        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "<script" not in page.text
        assert "style=" not in page.text
        for path in document["paths"]:
            assert path in page.text


def examples(value):
    """Yield each schema that stands beside an example, with the example."""
    if isinstance(value, list):
        for each in value:
            yield from examples(each)
    elif isinstance(value, dict):
        if "example" in value and "schema" in value:
            yield value["schema"], value["example"]
        for each in value.values():
            yield from examples(each)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory, logged):
    """Give a service to be fuzzed, and the token for it."""
    database = tmp_path_factory.mktemp("fuzzed") / "a.db"
    with open_ledger(str(database)) as ledger:
        token, text = tokens.create(ledger, "fuzzer", ["admin"], now=NOW)
        far = msgspec.structs.replace(token, id=FAR_NUMBER)
        ledger.put_tokens([msgspec.structs.replace(token, digest=b"none"), far])
    guesses, guarding.MOST_GUESSES = guarding.MOST_GUESSES, 10**9
    with Live(database, rule="last", requests_a_minute=10**9) as served:
        served.client.headers["Authorization"] = f"Bearer {text}"
        past = readings("north", START, daily(400))
        assert served.post(past[:-1], mode="backfill").status_code == 200
        assert served.post(past[-1:]).status_code == 200
        served.do(settled)
        yield served, text
    guarding.MOST_GUESSES = guesses


class TestFuzzing:
    def fuzz(self, fuzzed, folder, examples, seed):
        served, token = fuzzed
        (folder / "schemathesis.toml").write_text(CONFIGURATION)
        before = served.app._traffic.answers["5xx"]
        command = [sys.executable, "-c", "from schemathesis.cli import schemathesis as s; s()"]
        command += ["--config-file", str(folder / "schemathesis.toml"), "run"]
        command += [f"{served.url}/openapi.json", "-H", f"Authorization: Bearer {token}"]
        # To archive a sensor is not to delete it: one can look back at it.
        command += ["--exclude-checks", "use_after_free"]
        command += ["--checks", "all", "--exclude-path", "/v1/stream", "--no-color"]
        command += ["--seed", str(seed), "--max-examples", str(examples)]
        hooks = {"SCHEMATHESIS_HOOKS": "tests.service.web.fuzzing", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **hooks}, capture_output=True, text=True
        )
        told = "\n".join(line[:500] for line in done.stdout.splitlines())
        assert done.returncode == 0, told
        assert served.app._traffic.answers["5xx"] == before
        return int(re.search(r"(\d+) generated", told)[1])

    def test_whatever_is_sent_is_answered_as_the_document_says(self, fuzzed, tmp_path, counted):
        cases = self.fuzz(fuzzed, tmp_path, examples=8, seed=1)

        counted("E12", cases)
        assert cases > 1000

    @pytest.mark.slow
    def test_so_are_ten_thousand(self, fuzzed, tmp_path, counted):
        cases = self.fuzz(fuzzed, tmp_path, examples=400, seed=SEED)

        counted("E12", cases)
        assert cases > 10_000
