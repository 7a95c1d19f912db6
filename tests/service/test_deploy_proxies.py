"""The service behind nginx and behind Caddy, with the files that are shipped but for ports.

Each runs where it is installed (Debian: nginx-light, caddy).
"""

import gzip
import json
import os
import shutil
import socket
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from streamridge_service.limits import MOST_BYTES
from tests.support.paths import DEPLOY
from tests.support.service.free_ports import free_port
from tests.support.service.live_server import Live, make_tokens, stamp
from tests.support.waiting import LIMIT, wait_until

pytestmark = pytest.mark.slow  # the programs are rarely installed

NAME = "forecasts.example.org"
START = 1_767_225_600
ROWS = 39_000
# The configuration around a file of conf.d, so that nginx runs as the user of the tests.
AROUND = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/errors.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fast; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""
# The options with which Caddy uses an existing certificate.
BEFORE = "{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n"
SITE = "https://{name}:{port} {{\n\tbind 127.0.0.1\n\ttls {folder}/cert.pem {folder}/key.pem\n"


@dataclass(frozen=True)
class Proxied:
    """A service that is reached through a proxy."""

    port: int
    trusted: ssl.SSLContext
    secrets: dict[str, str]

    def client(self, scope=None, *, name=NAME, address=None):
        """Return a client that calls the service by a name, with a token."""
        headers = {"Host": name}
        if scope is not None:
            headers["Authorization"] = f"Bearer {self.secrets[scope]}"
        transport = httpx.HTTPTransport(verify=self.trusted, local_address=address)
        return Client(self.port, headers, transport)


class Client(httpx.Client):
    """A client that asks for the certificate of the name, at the address of this machine."""

    def __init__(self, port, headers, transport):
        super().__init__(
            base_url=f"https://127.0.0.1:{port}",
            headers=headers,
            transport=transport,
            timeout=LIMIT,
        )

    def build_request(self, *arguments, **options):
        options["extensions"] = {**(options.get("extensions") or {}), "sni_hostname": NAME}
        return super().build_request(*arguments, **options)


def changed(name, **changes):
    """Return a file that is shipped with some changes, each of which must be one."""
    text = (DEPLOY / name).read_text()
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def nginx_command(folder, service, port):
    site = changed(
        "nginx.conf",
        **{
            "127.0.0.1:8321": f"127.0.0.1:{service}",
            "listen 80;": f"listen 127.0.0.1:{free_port()};",
            "listen 443 ": f"listen 127.0.0.1:{port} ",
            f"/etc/ssl/{NAME}/fullchain.pem": f"{folder}/cert.pem",
            f"/etc/ssl/{NAME}/privkey.pem": f"{folder}/key.pem",
        },
    )
    (folder / "site.conf").write_text(site)
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder))
    return ["nginx", "-e", f"{folder}/errors.log", "-c", f"{folder}/nginx.conf"]


def caddy_command(folder, service, port):
    site = changed(
        "Caddyfile",
        **{
            "127.0.0.1:8321": f"127.0.0.1:{service}",
            f"{NAME} {{\n": SITE.format(name=NAME, port=port, folder=folder),
        },
    )
    (folder / "Caddyfile").write_text(BEFORE.format() + site)
    return ["caddy", "run", "--config", f"{folder}/Caddyfile", "--adapter", "caddyfile"]


def make_certificate(folder):
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem", "-days", "2",
        "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)


def until_reached(port, process, folder):
    def reached():
        try:
            socket.create_connection(("127.0.0.1", port), timeout=LIMIT).close()
            return True
        except OSError:
            said = "".join(file.read_text() for file in folder.glob("*.log"))
            assert process.poll() is None, said
            return False

    wait_until(reached, "a proxy that listens")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Give a service that asks for tokens and is called by a name, and the texts of its tokens."""
    database = tmp_path_factory.mktemp("proxied") / "a.db"
    secrets = make_tokens(database)
    with Live(database, allowed_hosts=NAME, trusted_proxies="127.0.0.1") as service:
        yield service, secrets


@pytest.fixture(scope="module", params=[nginx_command, caddy_command], ids=["nginx", "caddy"])
def proxied(request, served, tmp_path_factory):
    """Give the service behind a proxy."""
    service, secrets = served
    folder, port = Path(tmp_path_factory.mktemp("proxy")), free_port()
    command = request.param(folder, service.port, port)
    for program in (command[0], "openssl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    make_certificate(folder)
    with (folder / "output.log").open("w") as output:
        environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
        try:
            until_reached(port, process, folder)
            yield Proxied(port, ssl.create_default_context(cafile=f"{folder}/cert.pem"), secrets)
        finally:
            process.kill()  # Caddy would wait for its clients
            process.wait(LIMIT)


def test_the_page_comes_with_its_policy_and_browsers_are_kept_to_tls(proxied):
    with proxied.client() as client:
        answer = client.get("/")

    assert answer.status_code == 200
    assert "<title>streamridge" in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_tokens_and_refusals_pass_the_proxy(proxied):
    with proxied.client() as stranger, proxied.client("read") as reader:
        assert stranger.get("/v1/summary").json()["code"] == "sr-no-token"
        assert reader.get("/v1/summary").status_code == 200
        assert reader.post("/v1/readings", json=[]).json()["code"] == "sr-forbidden"


def test_a_large_compressed_batch_passes_the_proxy(proxied):
    row = {"sensor": f"many-{proxied.port}", "time": stamp(START), "value": 1}
    body = gzip.compress(b"\n".join([json.dumps(row).encode()] * ROWS))
    headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}

    with proxied.client("write") as client:
        counts = client.post("/v1/readings", content=body, headers=headers).json()

    assert counts["accepted"] + counts["duplicate"] == ROWS
    assert counts["accepted"] == 1


def test_the_service_refuses_a_body_that_is_too_large(proxied):
    headers = {"Content-Type": "application/x-ndjson"}

    with proxied.client("write") as client:
        answer = client.post("/v1/readings", content=b" " * (MOST_BYTES + 1), headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (413, "sr-too-large")


def test_an_event_passes_the_proxy_at_once(proxied):
    name = f"live-{proxied.port}"
    with proxied.client("admin") as client, proxied.client("read") as reader:
        client.put(f"/v1/sensors/{name}", json={})
        with reader.stream("GET", "/v1/stream", params={"sensors": name}) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith(":")
            for step in range(2):
                row = {"sensor": name, "time": stamp(START + 900 * step), "value": step}
                client.post("/v1/readings", json=[row])
                # Each event comes before the next reading is sent: nothing is buffered.
                while next(lines) != "event: sensor":
                    pass


def test_other_host_names_are_refused(proxied):
    with proxied.client(name="elsewhere.example") as client:
        answer = client.get("/livez")

    # Caddy does not even ask the service: it answers with nothing.
    assert answer.status_code == 421 or answer.content == b""


def test_wrong_tokens_are_counted_by_the_address_that_the_proxy_sees(proxied):
    """An address that a client claims is ignored."""
    address = f"127.0.0.{2 + proxied.port % 200}"
    with proxied.client("wrong", address=address) as guesser, proxied.client("read") as other:
        codes = [
            guesser.get("/v1/summary", headers={"X-Forwarded-For": f"203.0.113.{i}"}).status_code
            for i in range(12)
        ]

        assert (codes[0], codes[-1]) == (401, 429)
        assert other.get("/v1/summary").status_code == 200
