"""A fake service that stores rows, and fails on request."""

from __future__ import annotations

import gzip
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from streamridge_service.limits import LARGEST

CLOSE = "close the connection"


class Receiver:
    """The received rows, and the failures to answer with, in turn."""

    def __init__(self, step_seconds=3600):
        self.step_seconds, self.steps = step_seconds, {}
        self.rows, self.batches, self.requests, self.troubles = {}, [], [], []
        self.token, self.largest, self.url = None, 10**9, ""

    def take(self, body, query):
        """Store rows as a service does; return the status and the answer."""
        lines = [json.loads(line) for line in gzip.decompress(body).splitlines()]
        if len(lines) > self.largest:
            return 413, {"code": "sr-too-large", "detail": "Too many rows."}
        counts = {"accepted": 0, "duplicate": 0, "refused": 0}
        refusals = []
        for number, row in enumerate(lines, 1):
            key = row["sensor"], row["time"]
            if row["value"] > LARGEST:
                counts["refused"] += 1
                refusals.append({"line": number, "code": "sr-out-of-range", "detail": "Too large."})
            elif key in self.rows:
                counts["duplicate"] += 1
            else:
                self.rows[key] = row["value"]
                counts["accepted"] += 1
        self.batches.append(lines)
        if refusals:
            return 422, {"code": "sr-out-of-range", **counts, "refusals": refusals}
        return 200, counts

    def hours_of(self, path):
        """Return the number of readings of a sensor, as if in one hour."""
        name = path.split("/")[3]
        start, end = path.partition("from=")[2].split("&to=")
        count = sum(sensor == name and start <= time < end for sensor, time in self.rows)
        return [{"time": start, "expected": count, "received": count}]

    def answer(self, method, path, body, headers):
        """Return the status and the answer to a request."""
        self.requests.append((method, path, headers))
        if self.token is not None and headers.get("authorization") != f"Bearer {self.token}":
            return 401, {"code": "sr-no-token", "detail": "No.", "remedy": "Send a token."}
        if method == "POST":
            return self.take(body, path)
        if path.startswith("/v1/summary"):
            return 200, {"step_seconds": self.step_seconds}
        newest = {}
        for sensor, time in self.rows:
            newest[sensor] = max(time, newest.get(sensor, time))
        if path.partition("?")[0].endswith("/gaps"):
            return 200, {"hours": self.hours_of(path)}
        items = [
            {"id": name, "newest": time, "step_seconds": self.steps.get(name, self.step_seconds)}
            for name, time in sorted(newest.items())
        ]
        items += [
            {"id": name, "newest": None, "step_seconds": step}
            for name, step in self.steps.items()
            if name not in newest
        ]
        # Two at a time, so that there are pages.
        begin = int(path.partition("cursor=")[2] or 0)
        cursor = str(begin + 2) if len(items) > begin + 2 else None
        return 200, {"items": items[begin : begin + 2], "cursor": cursor}


@contextmanager
def receiving(receiver):
    """Serve a receiver on a free port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # headers and body would wait for each other

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            trouble = None
            if self.command == "POST" and receiver.troubles:
                trouble = receiver.troubles.pop(0)
            if trouble == CLOSE:
                # As if the answer was lost: the rows are stored all the same.
                receiver.answer(self.command, self.path, body, headers)
                self.close_connection = True
                return
            extra = {}
            if trouble is not None:
                status, extra = trouble
                said = {"code": "sr-busy", "detail": "Not now."}
            else:
                status, said = receiver.answer(self.command, self.path, body, headers)
            content = json.dumps(said).encode()
            self.send_response(status)
            for name, value in {**extra, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = handle_any  # noqa: N815, the names that the server looks for

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
