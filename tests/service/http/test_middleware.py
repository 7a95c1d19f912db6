"""Headers of every response, and checks of the host and the origin."""

import asyncio
import json

import pytest

from streamridge_service.http.connections import Connections
from streamridge_service.http.middleware import Middleware
from streamridge_service.http.routing import Traffic
from streamridge_service.settings import settings_of
from tests.support.service.live_server import raw
from tests.support.service.routes import all_routes

ALWAYS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
UNVERSIONED = {
    "/", "/page/{file}", "/docs", "/openapi.json", "/problems", "/livez", "/readyz", "/version",
    "/metrics", "/api/v2/write", "/write", "/query", "/ping", "/health",
}  # fmt: skip


def assert_guarded(headers):
    """Assert that a response has all security headers."""
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'self'; frame-ancestors 'none'")
    assert "unsafe" not in policy
    assert {name: headers[name] for name in ALWAYS} == ALWAYS
    assert not [name for name in headers if name.startswith("access-control")]
    assert "set-cookie" not in headers
    assert "server" not in headers
    assert len(headers["x-request-id"]) == 16


class TestSecurityHeaders:
    def test_responses_of_all_routes_have_the_security_headers(self, guarded, secrets, counted):
        routes = all_routes(guarded)
        counted("E10", 2 * len(routes))
        for route in routes:
            for token in (None, secrets["admin"]):
                _, headers, _ = route.ask(guarded, token, "127.3.0.1", sensor="headers")
                assert_guarded(headers)

    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [("GET", "/nothing", 404), ("PATCH", "/v1/sensors", 405), ("OPTIONS", "/v1/sensors", 405)],
    )
    def test_responses_without_a_route_have_the_security_headers(self, live, method, path, status):
        answer = live.client.request(method, path)

        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert_guarded(answer.headers)

    def test_a_wrong_method_gets_the_allowed_methods(self, live):
        for method in ("PATCH", "OPTIONS"):
            allowed = live.client.request(method, "/v1/sensors/north").headers["allow"]

            assert set(allowed.split(", ")) == {"GET", "PUT", "DELETE"}

    def test_only_files_of_the_page_may_be_cached(self, live):
        assert live.client.get("/v1/summary").headers["cache-control"] == "no-store"
        assert live.client.get("/page/page.js").headers["cache-control"] == "no-cache"


HOSTS = (
    "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "[::2]",
)  # fmt: skip


class TestHostNames:
    @pytest.mark.parametrize("host", HOSTS)
    def test_requests_for_another_host_are_refused(self, live, host, counted):
        counted("E10", len(HOSTS))
        request = f"GET /livez HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()

        status, headers, body = raw(live.port, request)

        assert (status, b"sr-bad-host" in body) == (421, True)
        assert_guarded(headers)

    @pytest.mark.parametrize(
        "host", ["localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]", "[::1]:80"]
    )
    def test_requests_for_its_own_host_names_are_answered(self, live, host):
        request = f"GET /livez HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()

        assert raw(live.port, request)[0] == 200


OTHER_ORIGINS = (
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost.evil.example:8321"},
    {"Origin": "http://127.0.0.1:3000"},  # another port of the same machine
    {"Origin": "http://localhost"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
)


class TestOrigins:
    @pytest.mark.parametrize("headers", OTHER_ORIGINS, ids=str)
    def test_a_page_of_another_origin_cannot_change_anything(self, live, headers, counted):
        """A browser sends plain text of any page to any address, without asking it first."""
        changing = [route for route in all_routes(live) if route.method != "GET"]
        counted("E10", len(OTHER_ORIGINS) * len(changing))
        assert "POST /api/v2/write" in map(str, changing)
        for route in changing:
            status, told, body = route.ask(live, headers=headers)

            assert (status, json.loads(body)["code"]) == (403, "sr-cross-site"), route
            assert_guarded(told)

    @pytest.mark.parametrize(
        "headers",
        [{}, {"Origin": "own"}, {"Origin": "own", "Sec-Fetch-Site": "same-origin"}],
        ids=str,
    )
    def test_programs_and_the_own_page_can_post(self, live, headers):
        headers = {name: live.url if text == "own" else text for name, text in headers.items()}

        assert live.client.post("/v1/readings", json=[], headers=headers).status_code == 200

    def test_a_page_behind_a_proxy_with_tls_can_post(self, live):
        headers = {"Host": "localhost", "Origin": "https://localhost"}

        assert live.client.post("/v1/readings", json=[], headers=headers).status_code == 200


class TestVersions:
    def test_the_paths_of_all_routes_but_a_few_have_a_version(self, guarded, counted):
        paths = {route.path for route in all_routes(guarded)}
        counted("E13", len(paths))

        assert {path for path in paths if not path.startswith("/v1/")} == UNVERSIONED


class TestHead:
    @pytest.mark.parametrize("path", ["/livez", "/readyz", "/", "/v1/summary", "/v1/sensors"])
    def test_head_returns_the_headers_without_a_body(self, live, path):
        head, full = live.client.head(path), live.client.get(path)

        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == full.headers["content-type"]

    def test_head_is_refused_for_the_event_stream(self, live):
        assert live.client.head("/v1/stream").status_code == 405


class TestTurns:
    """Requests that read take turns, so that many at once do not delay the others."""

    @pytest.mark.parametrize(
        ("method", "path"), [("GET", "/livez"), ("GET", "/readyz"), ("POST", "/v1/readings")]
    )
    def test_many_requests_that_read_delay_no_other(self, method, path, tmp_path, counted):
        counted("D4", 200)
        begun = []

        async def app(scope, receive, send):
            begun.append(scope["path"])

        async def requested():
            middleware = Middleware(
                app, settings_of(database=str(tmp_path / "a.db")), Traffic(), Connections(9, 9)
            )
            requests = [("GET", "/openapi.json")] * 200 + [(method, path)]
            headers = [(b"host", b"localhost")]
            await asyncio.gather(
                *(
                    middleware(
                        {"type": "http", "method": each, "path": to, "headers": headers},
                        None,
                        None,
                    )
                    for each, to in requests
                )
            )

        asyncio.run(requested())

        assert len(begun) == 201
        assert begun.index(path) <= 1
