"""States as bytes, changed at random: as they come, or sealed again as if nothing had happened."""

from __future__ import annotations

import json
from hashlib import blake2b

from streamridge.files.checkpoint import DIGEST_BYTES, MAGIC

START = len(MAGIC) + 12
ODD = [None, True, -1, 0, 10**12, 2**63, 1e308, -0.5, "", "x", "<f8", "|O", [], {}, [10**9, 10**9]]


def altered(rng, content):
    """Return bytes of which some were changed, cut out, put in twice, or lost at the end."""
    changed = bytearray(content)
    at, size = rng.randrange(len(changed)), rng.choice([1, 1, 8, 64, 1024])
    match rng.randrange(6):
        case 0:
            changed[at] ^= 1 << rng.randrange(8)
        case 1:
            changed[at : at + size] = rng.randbytes(size)
        case 2:
            del changed[at : at + size]
        case 3:
            changed[at:at] = changed[at : at + size]
        case 4:
            del changed[at:]
        case 5:
            changed[at : at + size] = bytes(size)
    return bytes(changed)


def resealed(rng, content):
    """Return a state whose header or numbers were changed, with a length and a digest that fit."""
    length = int.from_bytes(content[START - 8 : START], "little")
    header, payload = content[START : START + length], content[START + length : -DIGEST_BYTES]
    match rng.randrange(4):
        case 0:
            header = altered(rng, header)
        case 1:
            payload = altered(rng, payload)
        case _:
            document = json.loads(header)
            spoil(rng, document)
            header = json.dumps(document).encode()
    body = content[: START - 8] + len(header).to_bytes(8, "little") + header + payload
    return body + blake2b(body, digest_size=DIGEST_BYTES).digest()


def spoil(rng, document):
    """Change something in a document: a value becomes another, or is gone."""
    places = list(places_of(document))
    holder, key = rng.choice(places)
    if rng.random() < 0.3:
        del holder[key]
    else:
        holder[key] = rng.choice(ODD)


def places_of(value):
    """Yield all places of a document: what holds a value, and by which key or number."""
    pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for key, inner in pairs:
        yield value, key
        if isinstance(inner, dict | list):
            yield from places_of(inner)
