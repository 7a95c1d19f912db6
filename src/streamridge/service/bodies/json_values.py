"""Values of JSON that are not readings as they should be: read to tell what is wrong with them.

The standard library's reader takes more than JSON: NaN, texts that are no Unicode, a field twice.
Here that is wanted, so that each of these gets the refusal that names it.
"""

from __future__ import annotations

from json import JSONDecodeError, JSONDecoder

import msgspec

from streamridge.errors import shown
from streamridge.service.bodies.fields import FieldError, require_fields
from streamridge.service.bodies.lines import require_short

# Objects become tuples of pairs, in which a field may be there twice; whole numbers become floats,
# since Python refuses those of thousands of digits.
READER = JSONDecoder(object_pairs_hook=tuple, parse_int=float)
# Quotation marks of a reading: around three names and two texts. A reading of right fields that
# has more has a field twice, or a quotation mark in a text.
QUOTES = 10


class TypedReading(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A reading whose fields have the right kinds."""

    sensor: str
    time: str
    value: float | None


# What msgspec raises for bodies that are not as they should be.
UNTYPED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def fields_of(value: object) -> tuple[object, object, object]:
    """Return sensor, time and value of what READER gave, if it is an object of just these."""
    if not isinstance(value, tuple):
        raise FieldError(
            "sr-bad-row",
            f"a row must be an object with sensor, time and value, got {shown(value)}.",
        )
    require_fields([name for name, _ in value])
    fields = dict(value)
    return fields["sensor"], fields["time"], fields["value"]


def fields_of_line(raw: bytes) -> tuple[object, object, object]:
    """Return sensor, time and value of a line."""
    require_short(raw)
    try:
        return fields_of(READER.decode(raw.decode()))
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 at byte {error.start + 1}"
    except JSONDecodeError as error:
        reason = f"is not JSON at character {error.pos + 1}: {error.msg}"
    except RecursionError:
        reason = "is nested too deeply"
    raise FieldError("sr-bad-row", f"a line must be one object of JSON; this one {reason}.")
