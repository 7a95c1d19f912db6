"""A process that tries to serve a storage, says how that went, and holds it until it is told."""

import sys

from streamridge.service.ledger.base import InUseError
from streamridge.service.ledger.opening import open_ledger


def main(address):
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    try:
        ledger = open_ledger(address)
    except InUseError as error:
        sys.stdout.write(f"{error}\n")
        return
    with ledger:
        sys.stdout.write("serving\n")
        sys.stdout.flush()
        sys.stdin.readline()
