"""The files in deploy/ name only what there is: routes, columns, figures, settings, commands."""

import configparser
import json
import re
import shlex
import tomllib
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
import typer

from streamridge.cli.main import app as command
from streamridge_service.http import server
from streamridge_service.http.app import create_app
from streamridge_service.http.middleware import ENDLESS
from streamridge_service.ledger.errors import FormatError, LibraryError, StorageError
from streamridge_service.limits import MOST_BYTES
from streamridge_service.settings import ServiceSettings, bytes_of
from tests.support.paths import DEPLOY, ROOT
from tests.support.service.deploy_files import loaded, rules_of_prometheus
from tests.support.service.in_process import fed, serving

PROMISES = (
    "readings_refused", "readings_late", "readings_held", "sensors", "rebuilt", "events_dropped",
    "commit_seconds", "wal_bytes", "days_left", "newest_reading_age_seconds",
    "backup_age_seconds", "backups_failed", "prunings_failed",
)  # fmt: skip


# Values that Grafana inserts into addresses: dashboard variables, and the displayed times.
FILLED = {
    "sensor": "north",
    "find": "nor",
    "lead": "1",
    "__timeFrom:date:iso": "2023-11-14T22:15:00.254Z",
    "__timeTo:date:iso": "2023-11-15T22:15:00.254Z",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Give the document, the figures and the answers to all queries of a service that runs."""

    async def ask(service):
        await fed(service, 0, 4)
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            pages = [(await client.get(path)).text for path in ("/openapi.json", "/metrics")]
            urls = {each.values[0]["url"] for each in QUERIES}
            return [*pages, {url: await client.get(filled(url)) for url in urls}]

    document, figures, answers = serving(ask, tmp_path_factory.mktemp("deploy") / "service.db")
    return json.loads(document), figures, answers


def filled(url):
    return re.sub(r"\$\{([\w:]+)\}", lambda found: FILLED[found[1]], url)


@pytest.fixture(scope="module")
def document(told):
    return told[0]


# Queries of the dashboards.


def queries_of(value):
    """Yield every query of the Infinity plugin within a value."""
    if isinstance(value, dict):
        if "root_selector" in value:
            yield value
        for each in value.values():
            yield from queries_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from queries_of(each)


QUERIES = [
    pytest.param(query, id=f"{path.suffix[1:]}-{i}:{query['url'].partition('?')[0]}")
    for path in sorted(each for each in DEPLOY.glob("grafana/**/*") if each.is_file())
    for i, query in enumerate(queries_of(loaded(path)))
]


def operation_of(document, url):
    """Return the operation that a query asks for, and its parameters."""
    parts = urlsplit(url)
    path = parts.path.replace("${sensor}", "{sensor}")
    assert path in document["paths"], f"there is no route {path}"
    return document["paths"][path]["get"], dict(parse_qsl(parts.query, keep_blank_values=True))


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_uses_existing_routes_and_parameters(document, query):
    operation, given = operation_of(document, query["url"])

    known = {each["name"]: each["schema"] for each in operation["parameters"]}
    for name, value in given.items():
        assert name in known, name
        if not value.startswith("${"):
            require_fits(value, known[name])


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_returns_the_columns_of_its_panel(told, query):
    answer = told[2][query["url"]]

    assert answer.status_code == 200, answer.text
    if not re.fullmatch(r"\w*", query["root_selector"]):
        return  # an expression, of which only the plugin knows the result
    rows = answer.json()[query["root_selector"]] if query["root_selector"] else answer.json()
    for row in rows if isinstance(rows, list) else [rows]:
        for column in query["columns"]:
            require_there(row, column["selector"].split("."))


def require_there(row, names):
    """Raise unless a row has what a selector names, or nothing in its place."""
    for name in names:
        if row is None:
            return
        assert name in row, name
        row = row[name]


def require_fits(value, schema):
    assert value in schema.get("enum", [value])
    if schema.get("type") == "integer":
        assert schema.get("minimum", 0) <= int(value) <= schema.get("maximum", 1 << 60)


@pytest.mark.parametrize("query", QUERIES)
def test_the_columns_of_a_query_are_in_the_answer(document, query):
    operation, _ = operation_of(document, query["url"])
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]

    rows = rows_of(document, answer, query["root_selector"])

    for column in query["columns"]:
        require_kind(found(document, rows, column["selector"]), column["type"])


def rows_of(document, answer, selector):
    """Return the schema of the rows that a root selector picks, each of its names checked."""
    if re.fullmatch(r"\w*", selector):
        rows = found(document, answer, selector)
        return found(document, rows, "[]") if "items" in rows else rows
    if each := re.fullmatch(r"items\.\(\$at := (\w+); \$each\((\w+), function.*\)\)", selector):
        item = found(document, found(document, answer, "items"), "[]")
        values = found(document, item, each[2])["additionalProperties"]
        return made({"time": found(document, item, each[1]), "name": STRING, "value": values})
    flag = re.fullmatch(r'\{"(\w+)": (\w+) \? 1 : 0\}', selector)
    assert flag, f"nothing is known of the selector {selector}"
    assert found(document, answer, flag[2])["type"] == "boolean"
    return made({flag[1]: {"type": "integer"}})


STRING = {"type": "string"}


def made(properties):
    return {"type": "object", "properties": properties}


def found(document, schema, path):
    """Return the schema of a part of an answer; "[]" is an item of a list."""
    schema = plain(document, schema)
    for name in path.split(".") if path else ():
        inner = schema["items"] if name == "[]" else schema.get("properties", {}).get(name)
        assert inner is not None, f"there is no {path} in {list(schema.get('properties', {}))}"
        schema = plain(document, inner)
    return schema


def plain(document, schema):
    """Return what a schema refers to, without the case that there is nothing."""
    if "anyOf" in schema:
        (schema,) = [each for each in schema["anyOf"] if each.get("type") != "null"]
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def require_kind(schema, kind):
    kinds = {"number": ("number", "integer"), "timestamp": ("string",), "string": ("string", None)}
    assert schema.get("type") in kinds[kind]
    if kind == "timestamp":
        assert schema["format"] == "date-time"


def test_a_column_or_route_that_does_not_exist_is_noticed(document):
    with pytest.raises(AssertionError, match="no route"):
        operation_of(document, "/v1/sensor/${sensor}/history")
    operation, _ = operation_of(document, "/v1/summary")
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
    with pytest.raises(AssertionError, match=r"there is no sensors\.god"):
        found(document, answer, "sensors.god")


def test_the_dashboard_shows_the_state_of_the_service_and_one_sensor():
    dashboard = loaded(DEPLOY / "grafana/dashboards/streamridge.json")

    urls = {query["url"].partition("?")[0] for query in queries_of(dashboard["panels"])}
    names = {each["name"] for each in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{(\w+)\}", json.dumps(dashboard))) - {"__url_time_range"}

    assert {"/v1/summary", "/v1/sensors", "/v1/sensors/${sensor}/history"} <= urls
    assert "/v1/sensors/${sensor}/tuning" in urls
    assert used == names
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_panels_of_the_dashboard_do_not_overlap():
    panels = loaded(DEPLOY / "grafana/dashboards/streamridge.json")["panels"]

    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_alerts_of_grafana_refer_to_their_own_queries():
    (group,) = loaded(DEPLOY / "grafana/provisioning/alerting/streamridge.yaml")["groups"]

    for rule in group["rules"]:
        known = {each["refId"] for each in rule["data"]}
        last = rule["data"][-1]["model"]
        named = re.findall(r"\$\$([A-Z])", last["expression"]) or [last["expression"]]
        assert rule["condition"] in known
        assert set(named) <= known
    assert len({rule["uid"] for rule in group["rules"]}) == len(group["rules"])


def test_grafana_finds_its_source_where_the_dashboard_looks_for_it():
    (source,) = loaded(DEPLOY / "grafana/provisioning/datasources/streamridge.yaml")["datasources"]
    dashboard = (DEPLOY / "grafana/dashboards/streamridge.json").read_text()

    assert set(re.findall(r'"uid": "([\w-]+)"', dashboard)) == {source["uid"]}
    assert set(re.findall(r'"type": "([\w-]+-datasource)"', dashboard)) == {source["type"]}


# Queries of Prometheus.


@pytest.mark.parametrize("rule", rules_of_prometheus(), ids=lambda rule: rule["alert"])
def test_an_alert_uses_existing_metrics(told, rule):
    names = set(re.findall(r"streamridge_\w+", rule["expr"]))
    states = re.findall(r'streamridge_sensors\{state="(\w+)"\}', rule["expr"])

    figures = {line.partition(" ")[0] for line in told[1].splitlines() if line[:1] != "#"}
    assert names <= {figure.partition("{")[0] for figure in figures}
    assert all(f'streamridge_sensors{{state="{state}"}}' in figures for state in states)
    assert {"summary", "action"} == set(rule["annotations"])
    assert rule["labels"]["severity"] in ("page", "ticket", "info")


def test_every_promise_has_an_alert(record_property):
    record_property("row", "F3")
    record_property("cases", len(PROMISES))
    expressions = " ".join(rule["expr"] for rule in rules_of_prometheus())

    missing = [name for name in PROMISES if f"streamridge_{name}" not in expressions]
    assert not missing


def test_prometheus_scrapes_an_existing_route(document):
    (job,) = loaded(DEPLOY / "prometheus/prometheus.yml")["scrape_configs"]

    assert job["metrics_path"] in document["paths"]


def test_prometheus_finds_its_rules_next_to_its_configuration():
    (rules,) = loaded(DEPLOY / "prometheus/prometheus.yml")["rule_files"]

    assert (DEPLOY / "prometheus" / rules).is_file()


# How the service is started.

FIELDS = ServiceSettings.model_fields


def settings_in(environment):
    """Return the settings that variables of the environment stand for."""
    given = {name: value for name, value in environment.items() if name.startswith("STREAMRIDGE_")}
    names = {name.removeprefix("STREAMRIDGE_").lower() for name in given}
    assert names <= set(FIELDS), names - set(FIELDS)
    return given


def valid(monkeypatch, environment, tmp_path):
    """Return the settings of a service that is started with these variables."""
    for name, value in settings_in(environment).items():
        monkeypatch.setenv(name, str(value))
    if "://" not in environment["STREAMRIDGE_DATABASE"]:
        monkeypatch.setenv("STREAMRIDGE_DATABASE", str(tmp_path / "streamridge.db"))
    return ServiceSettings()


@pytest.fixture
def unit():
    parser = configparser.RawConfigParser(strict=False)  # a key may come several times
    parser.optionxform = str
    parser.read(DEPLOY / "streamridge.service")
    return parser


def commands():
    return set(typer.main.get_command(command).commands)


def test_the_unit_starts_a_command_with_existing_settings(unit, monkeypatch, tmp_path):
    service = unit["Service"]
    environment = dict(word.split("=", 1) for word in shlex.split(service["Environment"]))

    settings = valid(monkeypatch, environment, tmp_path)

    assert service["ExecStart"].split()[1] in commands()
    assert int(service["MemoryMax"].removesuffix("G")) * 2**30 > bytes_of(settings.memory)
    assert service["StateDirectory"] in environment["STREAMRIDGE_DATABASE"]


def test_the_unit_restarts_after_errors_that_a_restart_fixes(unit):
    service = unit["Service"]
    hopeless = {int(code) for code in service["RestartPreventExitStatus"].split()}

    assert service["Restart"] == "on-failure"
    assert hopeless == {64, FormatError.exit_code, LibraryError.exit_code}
    assert StorageError.exit_code not in hopeless
    assert float(service["TimeoutStopSec"]) > server.STOP_TIMEOUT


@pytest.mark.parametrize("name", ["DynamicUser", "PrivateTmp", "PrivateDevices", "NoNewPrivileges"])
def test_the_unit_is_sandboxed(unit, name):
    assert unit["Service"][name] == "yes"
    assert unit["Service"]["ProtectSystem"] == "strict"
    assert unit["Service"]["CapabilityBoundingSet"] == ""


def test_the_container_starts_a_command_with_existing_settings(document, monkeypatch, tmp_path):
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    (environment,) = re.findall(r"^ENV (.*)$", text, flags=re.MULTILINE)
    (started,) = re.findall(r"^CMD (\[.*\])$", text, flags=re.MULTILINE)
    (health,) = re.findall(r"127\.0\.0\.1:(\d+)(/\w+)", text)
    (extras,) = re.findall(r"/source\[([\w,]+)\]", text)

    settings = valid(monkeypatch, dict(w.split("=", 1) for w in environment.split()), tmp_path)

    assert json.loads(started)[0] in commands()
    assert {str(settings.port), *re.findall(r"^EXPOSE (\d+)$", text, re.M)} == {health[0]}
    assert document["paths"][health[1]]["get"]["x-scope"] == "free"
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= set(known["optional-dependencies"])
    # Declarations in the documents must be possible, such as holidays of a country.
    assert {"service", "postgres", "holidays"} <= set(extras.split(","))
    assert re.search(r"^USER (?!root)", text, flags=re.MULTILINE)
    for copied in re.findall(r"^COPY (.+) \S+$", text, flags=re.MULTILINE):
        assert all((ROOT / name).exists() for name in copied.split())


def test_images_come_from_no_named_registry():
    services = loaded(DEPLOY / "compose.yaml")["services"].values()
    base = re.findall(r"^FROM (\S+)$", (DEPLOY / "Containerfile").read_text(), flags=re.MULTILINE)

    for image in [*base, *(service["image"] for service in services)]:
        assert "." not in image.partition("/")[0].partition(":")[0], image


def test_composed_services_use_existing_settings_and_files(monkeypatch, tmp_path):
    composed = loaded(DEPLOY / "compose.yaml")
    service, grafana = composed["services"]["streamridge"], composed["services"]["grafana"]
    environment = {
        name: re.sub(r"\$\{\w+:[-?]?(\w*)\}", r"\1", value)
        for name, value in service["environment"].items()
    }

    settings = valid(monkeypatch, environment, tmp_path)

    host = urlsplit(grafana["environment"]["STREAMRIDGE_URL"])
    assert host.hostname in settings.allowed_hosts
    assert host.port == settings.port
    assert float(service["stop_grace_period"].removesuffix("s")) > server.STOP_TIMEOUT
    for each in composed["services"].values():
        for volume in each.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in composed["volumes"] or (DEPLOY / source).exists(), source


def test_proxies_leave_refusals_to_the_service_and_do_not_buffer_events():
    nginx, caddy = ((DEPLOY / name).read_text() for name in ("nginx.conf", "Caddyfile"))
    (largest,) = re.findall(r"client_max_body_size (\d+)m;", nginx)
    (also,) = re.findall(r"max_size (\d+)MB", caddy)
    (stream,) = re.findall(rf"location = {ENDLESS} \{{(.*?)\}}", nginx, flags=re.DOTALL)

    assert int(largest) * 2**20 > MOST_BYTES
    assert int(also) * 10**6 > MOST_BYTES
    assert "proxy_buffering off;" in stream
    assert "flush_interval -1" in caddy
    assert f":{FIELDS['port'].default}" in nginx
    assert f":{FIELDS['port'].default}" in caddy
    assert nginx.count("{") == nginx.count("}")
    assert caddy.count("{") == caddy.count("}")


# Words.


@pytest.mark.parametrize(
    "path",
    sorted(path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".json"),
    ids=lambda path: str(path.relative_to(DEPLOY)),
)
def test_the_named_commands_flags_and_variables_exist(path):
    text = path.read_text()

    named = set(re.findall(r"(?:^|run |--rm |/data )streamridge ([a-z]+)\b", text, re.M))
    assert named <= commands()
    flags = {
        flag.replace("-", "_") for flag in re.findall(r"\b(?:raise|lower|or) --([a-z-]+)", text)
    }
    assert flags <= set(FIELDS)
    variables = set(re.findall(r"STREAMRIDGE_([A-Z_]+)", text)) - {"URL", "READ_TOKEN"}
    assert {name.lower() for name in variables} <= set(FIELDS)
