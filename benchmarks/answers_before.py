"""EVCLUS with defaults on the labelled sets of the data folder, now and in an earlier checkout.

    git worktree add --detach /tmp/before 353231e
    python benchmarks/answers_before.py /tmp/before [--seeds 3] [--most 2000] [--only PATTERN]

Both run in this environment, each in a process of its own, on the same objects and seeds. Bound: on
no set is the median of the adjusted Rand index lower than before by more than .03.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from bounds import Bounds
from datasets import NAMES, load
from sklearn.metrics import adjusted_rand_score

HERE = Path(__file__).resolve().parents[1]


def scores(only: str, seeds: int, most: int) -> None:
    """Print a line of JSON for every set: its name and the index of every seed."""
    from evdist import EVCLUS  # of the checkout that PYTHONPATH names

    warnings.simplefilter("ignore")
    for name in NAMES:
        if not re.search(only, name):
            continue
        data = load(name)
        if len(data.y) > most and data.metric != "precomputed":
            data = data.take(np.random.default_rng(0).choice(len(data.y), most, replace=False))
        found = [
            EVCLUS(data.n_clusters, metric=data.metric, random_state=seed).fit(data.X).labels_
            for seed in range(seeds)
        ]
        print(json.dumps([name, [adjusted_rand_score(data.y, labels) for labels in found]]))


def run(checkout: Path, given: argparse.Namespace) -> dict[str, list[float]]:
    command = [sys.executable, __file__, "--scores", "--only", given.only]
    command += ["--seeds", str(given.seeds), "--most", str(given.most)]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    said = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=environment, cwd=checkout
    ).stdout
    return dict(map(json.loads, said.splitlines()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, nargs="?", help="the earlier checkout")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--most", type=int, default=2000, help="objects of a set at most")
    parser.add_argument("--only", default="", help="regular expression for the names")
    parser.add_argument("--scores", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.scores:
        scores(given.only, given.seeds, given.most)
        return 0
    if given.before is None or not (given.before / "evdist").is_dir():
        parser.error("name the folder of an earlier checkout")
    before, now = run(given.before, given), run(HERE, given)
    bounds = Bounds()
    bounds.head("median adjusted Rand index, and what it was before")
    for name, values in now.items():
        was = float(np.median(before[name]))
        bounds.at_least(f"{name} (before {was:.3f})", float(np.median(values)), was - 0.03)
    means = [float(np.mean([np.median(v) for v in of.values()])) for of in (before, now)]
    print(f"mean of {len(now)} sets: before {means[0]:.3f}, now {means[1]:.3f}")
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())
