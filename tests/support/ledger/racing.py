"""A process that tries to open a storage, prints the result, and keeps it open until stopped."""

import sys

from streamridge_service.ledger.errors import InUseError
from streamridge_service.ledger.opening import open_ledger


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
