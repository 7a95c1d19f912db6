"""Tokens, scopes and rate limits."""

import itertools
import sqlite3
import time
from types import SimpleNamespace

import httpx
import limits.storage.memory
import pytest

from streamridge_service.http import tokens
from streamridge_service.ledger.opening import open_ledger
from streamridge_service.logs import TOKEN_PREFIX
from tests.support.service.live_server import Live, make_tokens
from tests.support.service.routes import all_routes
from tests.support.waiting import LIMIT, wait_until

# The scope of each route. A new route must be added here, too.
TABLE = {
    "free": {
        "GET /", "GET /page/{file}", "GET /livez", "GET /openapi.json", "GET /docs",
        "GET /problems", "GET /ping", "GET /health",
    },
    "write": {
        "POST /v1/readings", "POST /api/v2/write", "POST /write", "GET /query", "POST /query",
    },
    "read": {
        "GET /v1/sensors", "GET /v1/sensors/{sensor}", "GET /v1/sensors/{sensor}/forecasts",
        "GET /v1/sensors/{sensor}/history", "GET /v1/sensors/{sensor}/gaps",
        "GET /v1/sensors/{sensor}/tuning", "GET /v1/forecasts", "GET /v1/gaps", "GET /v1/accuracy",
        "GET /v1/summary", "GET /v1/events", "GET /v1/stream", "GET /metrics", "GET /readyz",
        "GET /version",
    },
    "admin": {
        "PUT /v1/sensors/{sensor}", "DELETE /v1/sensors/{sensor}",
        "POST /v1/sensors/{sensor}/retune", "POST /v1/sensors/{sensor}/release",
        "POST /v1/sensors/{sensor}/reset", "POST /v1/sensors/{sensor}/set",
        "POST /v1/sensors/{sensor}/freeze", "POST /v1/sensors/{sensor}/unfreeze",
        "POST /v1/sensors/{sensor}/rollback", "POST /v1/sensors/{sensor}/exclude",
        "POST /v1/clock/trust", "GET /v1/tokens", "POST /v1/tokens", "DELETE /v1/tokens/{number}",
        "POST /v1/sensors/{sensor}/acknowledge",
    },
}  # fmt: skip
ADDRESSES = (f"127.{a}.{b}.1" for a, b in itertools.product(range(1, 250), range(250)))


@pytest.fixture(scope="module")
def routes(guarded):
    return all_routes(guarded)


def asked(guarded, route, token):
    """Return the status of a request with a token, from an unused address."""
    return route.ask(guarded, token, next(ADDRESSES), sensor="unknown")[0]


class TestEveryRoute:
    def test_every_route_has_the_scope_of_the_table(self, routes, counted):
        counted("E4", len(routes))
        found = {scope: set() for scope in TABLE}
        for route in routes:
            found[route.scope].add(str(route))

        assert found == TABLE

    @pytest.mark.parametrize("kind", ["none", "wrong", "expired", "revoked"])
    def test_only_free_routes_answer_without_a_valid_token(
        self, guarded, secrets, routes, kind, counted
    ):
        counted("E1", 4 * len(routes))
        statuses = {
            str(route): asked(guarded, route, secrets.get(kind))
            for route in routes
            if route.scope != "free"
        }

        assert set(statuses.values()) == {401}, statuses
        free = [
            asked(guarded, route, secrets.get(kind)) for route in routes if route.scope == "free"
        ]
        assert set(free) == {200, 204}

    @pytest.mark.parametrize("scope", ["read", "write", "admin"])
    def test_a_token_allows_exactly_the_routes_of_its_scope(
        self, guarded, secrets, routes, scope, counted
    ):
        counted("E4", 3 * len(routes))
        allowed = {scope, "free"} if scope != "admin" else set(TABLE)
        wrong = []
        for route in routes:
            status = asked(guarded, route, secrets[scope])
            if (status == 403) == (route.scope in allowed) or status in (401, 429, 500):
                wrong.append((str(route), status))

        assert wrong == []

    def test_without_the_scope_known_and_unknown_sensors_look_the_same(
        self, guarded, secrets, routes, counted
    ):
        guarded.client.put("/v1/sensors/known", json={})
        named = [route for route in routes if "{sensor}" in route.path]
        counted("E4", 2 * len(named))
        for route in named:
            known, unknown = (
                route.ask(guarded, secrets["write"], sensor=name) for name in ("known", "unknown")
            )

            assert (known[0], known[2]) == (unknown[0], unknown[2])
            assert known[0] == 403

    def test_a_token_is_accepted_only_in_the_authorization_header(self, guarded, secrets, counted):
        counted("E10", 3)
        token = secrets["admin"]
        with httpx.Client(base_url=guarded.url, timeout=LIMIT) as client:
            assert client.get("/v1/summary", params={"token": token}).status_code == 401
            cookie = {"Cookie": f"token={token}; Authorization=Bearer {token}"}
            assert client.get("/v1/summary", headers=cookie).status_code == 401
            assert client.get("/v1/summary", auth=("admin", token)).status_code == 401


class TestStoredTokens:
    def test_the_database_contains_no_token(self, tmp_path, counted):
        made = make_tokens(tmp_path / "a.db")
        counted("E2", len(made))
        with sqlite3.connect(tmp_path / "a.db") as database:
            dump = "\n".join(database.iterdump()).encode()
        database.close()
        stored = b"".join(path.read_bytes() for path in tmp_path.iterdir()) + dump

        for text in made.values():
            assert text.encode() not in stored
            assert text.removeprefix(TOKEN_PREFIX).encode() not in stored

    def test_tokens_have_256_bits_and_never_repeat(self, tmp_path):
        with open_ledger(str(tmp_path / "a.db")) as ledger:
            texts = {tokens.create(ledger, "a", ["read"], now=0)[1] for _ in range(50)}

        assert len(texts) == 50
        assert {len(text) for text in texts} == {len(TOKEN_PREFIX) + 43}

    @pytest.mark.parametrize(
        ("name", "scopes", "expires", "message"),
        [
            ("", ["read"], None, "name must be"),
            ("a\n", ["read"], None, "name must be"),
            ("a", [], None, "scopes must be"),
            ("a", ["root"], None, "scopes must be"),
            ("a", ["read"], 5, "expires must be"),
        ],
    )
    def test_an_invalid_token_request_names_the_field(
        self, tmp_path, name, scopes, expires, message
    ):
        with (
            open_ledger(str(tmp_path / "a.db")) as ledger,
            pytest.raises(ValueError, match=message),
        ):
            tokens.create(ledger, name, scopes, now=10, expires=expires)

    def test_twenty_revoked_tokens_are_refused(self, guarded, counted):
        counted("E2", 20)
        made = [
            guarded.client.post("/v1/tokens", json={"name": "short", "scopes": ["read"]}).json()
            for _ in range(20)
        ]
        clients = [guarded.new_client(each["token"], next(ADDRESSES)) for each in made]
        assert {client.get("/v1/summary").status_code for client in clients} == {200}

        for each in made[:10]:  # by the service
            assert guarded.client.delete(f"/v1/tokens/{each['id']}").status_code == 204
        now = guarded.service.clock.now()
        for each in made[10:]:  # in the database, as another process would
            guarded.call(
                lambda service, number=each["id"]: service.writer.submit(
                    lambda ledger: tokens.revoke(ledger, number, now=now)
                )
            ).result(LIMIT)

        # An address that tries a wrong token again and again is told to wait (429).
        wait_until(
            lambda: {client.get("/v1/summary").status_code for client in clients} <= {401, 429},
            "refusals of all revoked tokens",
        )
        assert tokens.MAX_AGE < 1
        for client in clients:
            client.close()

    def test_the_list_of_tokens_has_no_secrets(self, guarded, secrets):
        listed = guarded.client.get("/v1/tokens")

        names = {each["name"]: each["valid"] for each in listed.json()["items"]}
        assert names["admin"] is True
        assert names["expired"] is False
        assert names["revoked"] is False
        assert all(text not in listed.text for text in secrets.values())

    def test_an_unknown_token_cannot_be_revoked(self, guarded):
        answer = guarded.client.delete("/v1/tokens/999999")

        assert (answer.status_code, answer.json()["code"]) == (404, "sr-unknown-token")

    def test_the_first_token_needs_the_scope_admin(self, live):
        answer = live.client.post("/v1/tokens", json={"name": "a", "scopes": ["read"]})

        assert (answer.status_code, answer.json()["code"]) == (422, "sr-bad-field")


class TestLimits:
    @pytest.fixture(autouse=True)
    def _one_moment(self, monkeypatch):
        """Let all requests of a test arrive at the same moment."""
        now = time.time()
        monkeypatch.setattr(limits.storage.memory, "time", SimpleNamespace(time=lambda: now))

    def test_an_address_is_limited_after_ten_wrong_tokens(self, guarded, secrets, counted):
        counted("E3", 200)
        with guarded.new_client(secrets["wrong"], "127.9.9.9") as client:
            statuses = [client.get("/v1/summary").status_code for _ in range(200)]
            retry = client.get("/v1/summary").headers["retry-after"]

        assert statuses == [401] * 10 + [429] * 190
        assert int(retry) > 0

    def test_a_claimed_address_does_not_evade_the_limit(self, guarded, secrets, counted):
        counted("E3", 15)
        with guarded.new_client(secrets["wrong"], "127.9.9.8") as client:
            statuses = [
                client.get("/v1/summary", headers={"X-Forwarded-For": f"203.0.113.{i}"}).status_code
                for i in range(15)
            ]

        assert statuses == [401] * 10 + [429] * 5

    def test_a_trusted_proxy_names_the_address_of_its_client(self, tmp_path, counted):
        counted("E3", 15)
        made = make_tokens(tmp_path / "a.db")

        def ask(client, forwarded):
            headers = {"X-Forwarded-For": forwarded}
            return client.get("/v1/summary", headers=headers).status_code

        with (
            Live(tmp_path / "a.db", trusted_proxies="127.9.0.0/16, ::1") as served,
            served.new_client(made["wrong"], "127.9.9.7") as proxy,
            served.new_client(made["wrong"], "127.8.0.1") as stranger,
        ):
            guesser = [ask(proxy, f"198.51.100.{i}, 203.0.113.7") for i in range(11)]
            assert guesser == [401] * 10 + [429]
            assert ask(proxy, "203.0.113.8") == 401
            assert [ask(stranger, f"203.0.113.{i}") for i in range(11)] == [401] * 10 + [429]

    def test_a_valid_token_is_accepted_from_a_limited_address(self, guarded, secrets):
        with guarded.new_client(secrets["read"], "127.9.9.9") as client:
            assert client.get("/v1/summary").status_code == 200

    def test_requests_are_limited_to_600_a_minute_and_readings_are_not(self, guarded, counted):
        counted("E3", 610)
        wish = {"name": "busy", "scopes": ["read", "write"]}
        token = guarded.client.post("/v1/tokens", json=wish).json()["token"]
        with guarded.new_client(token) as client:
            statuses = [client.get("/v1/events?limit=1").status_code for _ in range(605)]
            readings = [client.post("/v1/readings", json=[]).status_code for _ in range(5)]

        assert statuses == [200] * 600 + [429] * 5
        assert readings == [200] * 5

    @pytest.mark.parametrize(
        "limit", ["0", "-1", "10001", "1e23", "9" * 23, "1.0", "", "ten", "٣", "null"]
    )
    def test_the_limit_of_a_page_must_be_1_to_10_000(self, live, limit, counted):
        counted("E3", 10)
        for path in ("/v1/sensors", "/v1/events", "/v1/forecasts", "/v1/accuracy", "/v1/gaps"):
            answer = live.client.get(path, params={"limit": limit})

            assert (answer.status_code, answer.json()["code"]) == (422, "sr-bad-parameter")

    @pytest.mark.parametrize(
        "query", ["limit=1&limit=2", "unknown=1", "q=%ff", "&".join(["q=1"] * 60)]
    )
    def test_unknown_and_repeated_parameters_are_refused(self, live, query):
        answer = live.client.get(f"/v1/sensors?{query}")

        assert (answer.status_code, answer.json()["code"]) == (422, "sr-bad-parameter")
