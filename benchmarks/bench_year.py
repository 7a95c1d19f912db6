"""Measure whether self-tuning pays all year: RMSE over that of the fixed model, by quarter.

    python benchmarks/bench_year.py FILE --sensor NAME [--mask FLAGS] [--quarters 4]

The stream is lived through from its beginning; the first 30 days are not scored, the rest is parted
into quarters of equal length.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
from accuracy.ours import default
from accuracy.streams import Plan, Stream, load
from threadpoolctl import threadpool_limits

from streamridge import replay
from streamridge.arrays import Vector
from streamridge.files.reading_options import ReadingOptions
from streamridge.metrics import rmse

WARMUP_DAYS = 30.0


def main() -> None:
    """Print the RMSE of both in each quarter, and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--sensor", required=True)
    parser.add_argument("--mask", help="file of the same shape; rows with 1 are not scored")
    parser.add_argument("--quarters", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    plan = Plan(warmup_days=WARMUP_DAYS, days=np.inf)
    (stream,) = load(
        options.file, ReadingOptions(sensors=[options.sensor]), plan, mask=options.mask
    )
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        tuned, fixed = pool.map(errors, (stream, stream), (True, False))
    quarters = [
        {"self-tuned": rmse(one[~np.isnan(one)]), "fixed": rmse(other[~np.isnan(other)])}
        for one, other in zip(
            *(np.array_split(each, options.quarters) for each in (tuned, fixed)), strict=True
        )
    ]
    if options.json:
        print(json.dumps(quarters))
        return
    for at, each in enumerate(quarters):
        ratio = each["self-tuned"] / each["fixed"]
        print(f"quarter {at + 1}: {each['self-tuned']:.2f} / {each['fixed']:.2f} = {ratio:.4f}")


def errors(stream: Stream, learn: bool) -> Vector:
    """Return the errors of the scored steps, NaN where there is nothing to compare with."""
    with threadpool_limits(1):
        run = replay(default(stream, learn=learn), stream.series, warmup=stream.warmup)
    return stream.actual - run.value[:, 0]


if __name__ == "__main__":
    main()
