"""No name in a request becomes the name of a file."""

import itertools
import os
import sys
import threading

import pytest

from tests.support.service.live_server import raw
from tests.support.service.routes import all_routes

UPS = (
    "../", "..\\", "%2e%2e/", "%2e%2e%2f", "..%2f", "..%5c", "%252e%252e%252f", "....//", "..;/",
    ".%00./",
)  # fmt: skip
GOALS = ("etc/passwd", "proc/self/environ", "a.db", "service.py", "index.html", "..")
DEPTHS = (1, 3, 8)
WHOLE = (
    "/etc/passwd", "%2fetc%2fpasswd", "file:///etc/passwd", "C:%5cboot.ini", "~root", "%00", ".",
    "..", "page.js%00.html", "page.js/..", "%c0%ae%c0%ae/", "..%c0%af", "index.html/../../x",
    "//etc//passwd", "con", "nul", ".git", ".env", "__init__.py", "page.js.map",
)  # fmt: skip
HOSTILE = [
    *(up * depth + goal for up, goal, depth in itertools.product(UPS, GOALS, DEPTHS)),
    *WHOLE,
]
every_text = pytest.mark.parametrize(
    "texts",
    [
        pytest.param([*HOSTILE[::7], *WHOLE], id="some"),
        pytest.param(HOSTILE, id="all", marks=pytest.mark.slow),
    ],
)


class Watch:
    """The files that threads of a service open while it is active."""

    def __init__(self):
        self.on, self.opened, self._own = False, [], threading.get_ident()
        sys.addaudithook(self._heard)

    def _heard(self, event, arguments):
        if self.on and event == "open" and threading.get_ident() != self._own:
            self.opened.append(str(arguments[0]))


# The service measures its memory now and then, whatever is requested.
PROCESSES = "/proc/"


def got(live, path):
    """Return the status of a path that is sent unchanged."""
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    return raw(live.port, request.encode())[0]


@every_text
def test_no_path_opens_a_file(live, texts, counted):
    routes = [route for route in all_routes(live) if "{" in route.path and route.method == "GET"]
    folder = os.path.dirname(live.settings.database)
    counted("E6", len(texts) * len(routes))
    live.client.get("/v1/sensors/north/history", params={"format": "parquet"})  # imports now
    watch = Watch()
    watch.on = True

    statuses = set()
    for text, route in itertools.product(texts, routes):
        path = route.filled(sensor=text, file=text, number=text)
        statuses.add(got(live, path))
    watch.on = False

    assert len(HOSTILE) >= 200
    assert 500 not in statuses
    assert statuses <= {200, 400, 404, 405, 422}
    assert [path for path in watch.opened if not path.startswith((folder, PROCESSES))] == []


@every_text
def test_no_parameter_opens_a_file(live, texts, counted):
    names = ("q", "cursor", "sort", "state", "format", "limit")
    counted("E6", len(texts) * len(names))
    watch = Watch()
    watch.on = True

    for name in names:
        for text in texts:
            assert got(live, f"/v1/sensors?{name}={text}") in (200, 400, 422)
    watch.on = False

    folder = os.path.dirname(live.settings.database)
    assert [path for path in watch.opened if not path.startswith((folder, PROCESSES))] == []


def test_the_test_notices_an_opened_file(live):
    watch = Watch()
    watch.on = True
    live.call(lambda service: open("/etc/hostname").close())
    watch.on = False

    assert "/etc/hostname" in watch.opened


def test_files_of_the_page_have_their_media_types(live):
    kinds = {name: live.client.get(f"/page/{name}") for name in ("page.js", "page.css", "icon.svg")}

    assert {name: answer.headers["content-type"] for name, answer in kinds.items()} == {
        "page.js": "text/javascript; charset=utf-8",
        "page.css": "text/css; charset=utf-8",
        "icon.svg": "image/svg+xml",
    }


def test_files_of_the_page_are_compressed_for_clients_that_allow_it(live):
    answers = [
        live.client.get("/page/uPlot.iife.min.js", headers={"Accept-Encoding": accepted})
        for accepted in ("identity", "gzip, br")
    ]

    assert [answer.headers.get("content-encoding") for answer in answers] == [None, "gzip"]
    assert len({answer.text for answer in answers}) == 1
    sizes = [int(answer.headers["content-length"]) for answer in answers]
    assert sizes[1] < sizes[0] / 2
    assert {answer.headers["vary"] for answer in answers} == {"Accept-Encoding"}


def test_an_unchanged_file_is_answered_with_304(live):
    tag = live.client.get("/").headers["etag"]

    again = live.client.get("/", headers={"If-None-Match": tag})

    assert (again.status_code, again.content) == (304, b"")
    assert live.client.get("/", headers={"If-None-Match": '"old"'}).status_code == 200
