"""Write the report of runs into a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamridge.errors import InvalidInputError
from streamridge.files.names import FileNames
from streamridge.report.images import write_images
from streamridge.report.page import overview, page, section
from streamridge.report.sensors import by_sensor
from streamridge.runs.run import Run


def write_report(
    runs: Sequence[Run],
    folder: Path,
    *,
    title: str,
    unit: str = "",
    feature_names: Sequence[str] | None = None,
) -> Path:
    """Write a page about runs that opens without a network, with PNG files beside it.

    Parameters
    ----------
    runs
        Of one or several sensors, by one or several methods each.
    folder
        It is made if need be.
    title
        Of the page.
    unit
        Of the readings.
    feature_names
        What the features of a row are called, for the kernels that read all of them.

    Returns
    -------
    Path
        Of the page.
    """
    if not runs:
        raise InvalidInputError("runs must hold at least one run, got none.")
    sensors, names = by_sensor(runs), FileNames()
    body = [overview(title, sensors, unit=unit)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for at, sensor in enumerate(sensors, start=1):
            images = write_images(sensor, folder, names, unit=unit, feature_names=feature_names)
            body.append(section(at, sensor, images, unit=unit, feature_names=feature_names))
        path = folder / "index.html"
        path.write_text(page(title, body), encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(
            f"report must be a folder that can be written, got {str(folder)!r} ({error})."
        ) from None
    return path
