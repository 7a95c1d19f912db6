"""`streamridge demo`: a misspecified start, kept fixed, against the same start learning online."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from threadpoolctl import threadpool_limits

from streamridge.cli.checks import require_extra, require_folder
from streamridge.datasets import simulate_roads
from streamridge.kernels.periodic import Periodic
from streamridge.kernels.radial import ARD
from streamridge.metrics import rmse
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.ohl import OnlineLearner
from streamridge.protocols.base import Step, run
from streamridge.protocols.timing import Costs, TimedModel
from streamridge.samples import Samples
from streamridge.streams.features import Features

DAY = 96
LAGS = 20
UNIT = "vehicles / 15 min"
HUNDRED = 100  # the kernel scales of the start are meant for flows in hundreds


@dataclass(frozen=True)
class Outcome:
    """Is what one way of tuning made of the stream."""

    name: str
    steps: list[Step]
    costs: Costs
    refits: int

    def record(self) -> dict[str, Any]:
        """Return the row of the table, as plain values."""
        return {
            "method": self.name,
            "rmse": rmse([step.error for step in self.steps]),
            "seconds_tuning": self.costs.tuning,
            "seconds_total": self.costs.total,
            "fits": self.refits,
        }


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("demo"),
    days: Annotated[int, typer.Option(min=2, help="Days to forecast.")] = 40,
    train_size: Annotated[int, typer.Option(min=DAY, help="Samples of a fit.")] = 2880,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated road.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object per method.")] = False,
) -> None:
    """Simulate a road and forecast it twice: fixed at a poor start, and learning online.

    Example: streamridge demo --days 10 --out demo
    """
    console = Console(stderr=True)
    require_extra("matplotlib", "plot")
    require_folder("out", out)
    # One thread is as fast at this size as two on a busy machine, and gives the same digits.
    with threadpool_limits(1):
        outcomes = _forecast(days, train_size, seed, console)
    picture = _draw(outcomes, out)
    if as_json:
        for outcome in outcomes:
            typer.echo(json.dumps(outcome.record()))
    else:
        Console().print(_table(outcomes, days))
    console.print(f"Picture: {picture}")


def _forecast(days: int, train_size: int, seed: int, console: Console) -> list[Outcome]:
    warmup = -(-(train_size + LAGS) // DAY)
    roads = simulate_roads(np.random.default_rng(seed), days=warmup + days)
    samples = Features(lags=LAGS).samples(roads.flows[:, 0] / HUNDRED)
    first = len(samples) - days * DAY
    history, stream = samples[first - train_size : first], samples[first:]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("day {task.fields[day]} of {task.fields[days]}"),
        TimeRemainingColumn(),
    )
    outcomes = []
    with Progress(*columns, console=console) as progress:
        for name, learn in (("fixed", False), ("OHL", True)):
            task = progress.add_task(name, total=len(stream), day=0, days=days)
            outcomes.append(_replay(name, learn, history, stream, progress, task))
    return outcomes


def _replay(
    name: str,
    learn: bool,
    history: Samples,
    stream: Samples,
    progress: Progress,
    task: TaskID,
) -> Outcome:
    # Too wide a kernel on every lag, and a period of two days: the start of the paper's prototype.
    kernel = Periodic(period=2 * DAY) + ARD(np.full(LAGS, 1.5e-4))
    model = TimedModel(KernelRidge(kernel, regularization=0.3, regularization_bounds=(0.03, 3.0)))
    learner = OnlineLearner(model, history, train_size=len(history), learn=learn)
    steps = []
    for step in run(learner, stream):
        steps.append(_in_vehicles(step))
        progress.update(task, advance=1, day=len(steps) // DAY)
    return Outcome(name, steps, model.costs, learner.refits)


def _table(outcomes: list[Outcome], days: int) -> Table:
    table = Table(title=f"One simulated detector, {days} days, 15 minutes ahead")
    table.add_column("method")
    for heading in (f"RMSE, {UNIT}", "against fixed", "tuning, s", "total, s", "refits"):
        table.add_column(heading, justify="right")
    records = [outcome.record() for outcome in outcomes]
    for record in records:
        table.add_row(
            record["method"],
            f"{record['rmse']:.1f}",
            f"{record['rmse'] / records[0]['rmse'] - 1:+.1%}",
            f"{record['seconds_tuning']:.1f}",
            f"{record['seconds_total']:.1f}",
            str(record["fits"]),
        )
    return table


def _draw(outcomes: list[Outcome], out: Path) -> Path:
    """Return the path of a picture with the last three days of forecasts, and RMSE(t)."""
    from matplotlib.figure import Figure

    from streamridge.plots import plot_forecasts, plot_running_rmse

    runs = {outcome.name: outcome.steps for outcome in outcomes}
    figure = Figure(figsize=(9, 7), layout="constrained")
    above, below = figure.subplots(2, 1)
    last = {name: steps[-3 * DAY :] for name, steps in runs.items()}
    plot_forecasts(above, last, steps_a_day=DAY, unit=UNIT)
    above.set(title="the last three days, 15 minutes ahead")
    plot_running_rmse(below, runs, steps_a_day=DAY, unit=UNIT)
    below.set(title="error so far: the same start, fixed and learning online")
    picture = out / "demo.png"
    figure.savefig(picture, dpi=150)
    return picture


def _in_vehicles(step: Step) -> Step:
    return Step(step.time, HUNDRED * step.forecast, HUNDRED * step.actual)
