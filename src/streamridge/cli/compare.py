"""`streamridge compare`: several tuning methods on the same data."""

from __future__ import annotations

from inspect import signature
from typing import Annotated, Any, get_type_hints

from streamridge.cli.options import methods_option
from streamridge.cli.replay import replay
from streamridge.runs.compare import PAPER_METHODS

ComparedMethods = Annotated[list[str] | None, methods_option(", ".join(PAPER_METHODS))]


def compare(**flags: Any) -> None:
    """Forecast a file with several tuning methods, and compare their errors and costs.

    ohl is online hyperparameter learning: it tunes the hyperparameters with every refit. ohl+ does
    the same from a start that is searched once, with steps that need no learning rate. hoag,
    random, grid and bayes search the past every week, or every --tune-every readings. fixed keeps
    the start. All methods use the same data and the same seed, and refit at the same steps.

    The default start suits roads: there ohl gains 0 to 3 percent over fixed. It gains more on other
    series, after a change, or from a worse start, as in the example.

    Example: streamridge compare roads.csv --hyperparameter regularization=0.01
    """
    replay(**{**flags, "method": flags["method"] or list(PAPER_METHODS)})


# The flags of `replay`, with another default for --method.
_FLAGS = signature(replay, eval_str=True)
compare.__signature__ = _FLAGS.replace(  # type: ignore[attr-defined]
    parameters=[
        flag.replace(annotation=ComparedMethods) if flag.name == "method" else flag
        for flag in _FLAGS.parameters.values()
    ]
)
compare.__annotations__ = get_type_hints(replay, include_extras=True) | {"method": ComparedMethods}
