"""A client of the event stream."""

import json
import socket
from contextlib import contextmanager

from tests.support.waiting import LIMIT


class Listener:
    """A client that reads events one by one."""

    def __init__(self, live, query="", last=None):
        self._socket = socket.create_connection(("127.0.0.1", live.port), timeout=LIMIT)
        head = f"GET /v1/stream{query} HTTP/1.1\r\nHost: localhost\r\n"
        head += f"Last-Event-ID: {last}\r\n" if last is not None else ""
        self._socket.sendall(f"{head}\r\n".encode())
        self._file = self._socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        while self._file.readline().strip():
            pass

    def close(self):
        self._file.close()
        self._socket.close()

    def next(self, *kinds):
        """Return the next event of some kinds: its id, kind and body."""
        while True:
            event = {}
            while line := self._line().strip():
                name, _, value = line.decode().partition(": ")
                event[name] = value
            if event.get("event") in kinds:
                return event["id"], event["event"], json.loads(event["data"])

    def _line(self):
        """Return the next line of an event, without the marks of HTTP chunks."""
        line = self._file.readline()
        if line == b"":
            raise EOFError
        if line.endswith(b"\r\n"):  # the size or the end of a chunk; lines of events end with \n
            return self._line()
        return line


@contextmanager
def listening(live, *arguments, **options):
    listener = Listener(live, *arguments, **options)
    try:
        yield listener
    finally:
        listener.close()
