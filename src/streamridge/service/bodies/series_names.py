"""Names of sensors that are made of the series and fields of the line protocol."""

from __future__ import annotations

from streamridge.service.bodies.fields import FieldError, name_of
from streamridge.service.bodies.line_syntax import Series, plain, series_of

# The field that needs no mention.
DEFAULT = "value"
REMEDY = (
    "It is made of the measurement, the values of its tags, and the field unless that is 'value'. "
    "Rename these, or drop a tag, where they are sent (Telegraf: tagexclude, processors.strings; "
    "Home Assistant: override_measurement)."
)


class SeriesNames:
    """The names of the sensors of one request, each made once.

    Colons inside a tag's value, and tags of other keys, can give two series one name; then the
    second is refused, since the two would be mixed.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[str, str, str], str] = {}
        self._owners: dict[str, tuple[Series, str]] = {}

    def name(self, measurement: str, tags: str, field: str) -> str:
        """Return the name of a sensor, by the parts of a line as they are written.

        Examples
        --------
        >>> SeriesNames().name("flow", ",road=A2,lane=1", "cars")
        'flow:1:A2:cars'
        """
        written = measurement, tags, field
        name = self._names.get(written)
        if name is None:
            name = self._names[written] = self._new(series_of(measurement, tags), plain(field))
        return name

    def _new(self, series: Series, field: str) -> str:
        parts = [series.measurement, *(value for _, value in series.tags)]
        text = ":".join(parts if field == DEFAULT else [*parts, field])
        try:
            name = name_of(text)
        except FieldError as error:
            raise FieldError(error.code, f"{error.detail} {REMEDY}", error.column) from None
        if self._owners.setdefault(name, (series, field)) != (series, field):
            raise FieldError(
                "sr-bad-name", f"two series have the name {name} in this body. {REMEDY}", "sensor"
            )
        return name
