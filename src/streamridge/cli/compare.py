"""`streamridge compare`: several ways of tuning side by side on the same data, seeds and clock."""

from __future__ import annotations

from inspect import signature
from typing import Annotated, Any, get_type_hints

from streamridge.cli.options import methods_option
from streamridge.cli.replay import replay
from streamridge.runs.compare import PAPER_METHODS

ComparedMethods = Annotated[list[str] | None, methods_option(", ".join(PAPER_METHODS))]


def compare(**flags: Any) -> None:
    """Forecast a file by several ways of tuning, and set errors and costs side by side.

    ohl learns as it goes; ohl+ does so from a start that is searched once, by steps without a rate;
    hoag, random, grid and bayes search the past every week, or every --tune-every readings; fixed
    stays at its start. All see the same data with the same seed, and refit at the same steps.

    Example: streamridge compare roads.csv --methods ohl,random,fixed --steps 960
    """
    replay(**{**flags, "method": flags["method"] or list(PAPER_METHODS)})


# The flags are those of `replay`, which does the work, but for the default of one.
_FLAGS = signature(replay, eval_str=True)
compare.__signature__ = _FLAGS.replace(  # type: ignore[attr-defined]
    parameters=[
        flag.replace(annotation=ComparedMethods) if flag.name == "method" else flag
        for flag in _FLAGS.parameters.values()
    ]
)
compare.__annotations__ = get_type_hints(replay, include_extras=True) | {"method": ComparedMethods}
