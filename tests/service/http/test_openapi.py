"""The OpenAPI document is complete, and the service keeps to it."""

import os
import re
import subprocess
import sys

import jsonschema_rs
import msgspec
import pytest

from streamridge_service.http import authorization as guarding
from streamridge_service.http import tokens
from streamridge_service.ledger.opening import open_ledger
from tests.support.paths import ROOT
from tests.support.service.in_process import settled
from tests.support.service.live_server import NOW, START, Live, daily, readings
from tests.support.service.routes import all_routes

# A number that the fuzzer does not draw, so that it cannot revoke its own token.
FAR_NUMBER = 8_234_567_891
SEED = int(os.environ.get("FUZZ_SEED", "3"))
# Routes whose requests can be wrong although they match the schema: a conflicting row, an unknown
# zone, a start after the end.
CONFIGURATION = """
[checks.negative_data_rejection]
expected-statuses = [
    "400", "401", "403", "404", "405", "406", "409", "415", "422", "428", "429", "431", "5xx",
]

[[operations]]
include-path-regex = "^/v1/(readings|tokens|gaps)$|^/api/v2/write$|^/(write|query)$|^/v1/sensors/"
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
    def test_the_document_has_all_routes(self, live, document):
        assert {name for name, _ in operations(document)} == set(map(str, all_routes(live)))

    def test_every_route_has_a_summary_and_a_unique_id(self, document):
        for name, operation in operations(document):
            assert operation["summary"].endswith("."), name
            assert operation["tags"], name
            names = [each["operationId"] for _, each in operations(document)]
            assert names.count(operation["operationId"]) == 1

    def test_every_schema_forbids_unknown_fields(self, document):
        for name, schema in document["components"]["schemas"].items():
            assert schema.get("additionalProperties") is False, name

    def test_every_example_matches_its_schema(self, document):
        found = list(examples(document))

        assert len(found) > 40
        for schema, example in found:
            whole = {**schema, "components": document["components"]}
            jsonschema_rs.validator_for(whole).validate(example)

    def test_every_body_and_response_has_a_schema(self, document):
        for name, operation in operations(document):
            contents = [each.get("content", {}) for each in operation["responses"].values()]
            contents += [operation.get("requestBody", {}).get("content", {})]
            for content in contents:
                assert all(told["schema"] for told in content.values()), name

    def test_the_documentation_page_needs_no_script(self, live, document):
        page = live.client.get("/docs")

        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "<script" not in page.text
        assert "style=" not in page.text
        for path in document["paths"]:
            assert path in page.text


def examples(value):
    """Yield each schema that has an example, with the example."""
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
    """Return a service to be fuzzed, and its token."""
    database = tmp_path_factory.mktemp("fuzzed") / "a.db"
    with open_ledger(str(database)) as ledger:
        token, text = tokens.create(ledger, "fuzzer", ["admin"], now=NOW)
        far = msgspec.structs.replace(token, id=FAR_NUMBER)
        ledger.put_tokens([msgspec.structs.replace(token, digest=b"none"), far])
    guesses, guarding.MAX_GUESSES = guarding.MAX_GUESSES, 10**9
    with Live(database, rule="last", requests_a_minute=10**9) as served:
        served.client.headers["Authorization"] = f"Bearer {text}"
        past = readings("north", START, daily(400))
        assert served.post(past[:-1], mode="backfill").status_code == 200
        assert served.post(past[-1:]).status_code == 200
        served.do(settled)
        yield served, text
    guarding.MAX_GUESSES = guesses


class TestFuzzing:
    def fuzz(self, fuzzed, folder, examples, seed, *more):
        served, token = fuzzed
        (folder / "schemathesis.toml").write_text(CONFIGURATION)
        before = served.app._traffic.responses["5xx"]
        command = [sys.executable, "-c", "from schemathesis.cli import schemathesis as s; s()"]
        command += ["--config-file", str(folder / "schemathesis.toml"), "run"]
        command += [f"{served.url}/openapi.json", "-H", f"Authorization: Bearer {token}"]
        # An archived sensor is not deleted: it can still be read.
        command += ["--exclude-checks", "use_after_free"]
        command += ["--checks", "all", "--exclude-path", "/v1/stream", "--no-color"]
        command += ["--request-timeout", "120"]  # a busy machine may need more than 10 seconds
        command += ["--seed", str(seed), "--max-examples", str(examples), *more]
        hooks = {"SCHEMATHESIS_HOOKS": "tests.support.service.fuzzing", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **hooks}, capture_output=True, text=True
        )
        told = "\n".join(line[:500] for line in done.stdout.splitlines())
        assert done.returncode == 0, told
        assert served.app._traffic.responses["5xx"] == before
        return int(re.search(r"(\d+) generated", told)[1])

    def test_random_requests_get_responses_that_the_document_allows(
        self, fuzzed, tmp_path, counted
    ):
        # Without the phase that tries every limit of every parameter in turn: two thirds of the
        # time. The slow suite has it.
        phases = "--phases", "examples,fuzzing,stateful"

        cases = self.fuzz(fuzzed, tmp_path, 2, 1, *phases)

        counted("E12", cases)
        assert cases > 100

    @pytest.mark.slow
    def test_ten_thousand_random_requests_get_allowed_responses(self, fuzzed, tmp_path, counted):
        cases = self.fuzz(fuzzed, tmp_path, examples=400, seed=SEED)

        counted("E12", cases)
        assert cases > 10_000
