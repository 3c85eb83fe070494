"""Belief functions on many objects: seconds per million mass functions on all sets of 8 clusters.

    python benchmarks/belief_speed.py [n]

Masses are uniform random ones, positive on all 256 sets: the worst case. `n` rows (20,000 by
default) are timed in processor seconds and scaled to a million; functions work on blocks of rows,
so that time grows with n and memory for intermediate values does not. Bounds are three times what
the page says, or more, for slower machines. Then the same rules in single precision, and on the 10
sets of `FocalSets.simple(8)`; last the memory in use beside arguments and result, by tracemalloc.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
from bounds import Bounds

from evdist import belief as ev

#: Seconds per million rows on one core of the machine of the page, times three.
SECONDS = {
    "contour": 5,
    "pignistic": 5,
    "belief": 20,
    "plausibility": 20,
    "commonality": 20,
    "mass_from_commonality": 20,
    "conjunctive": 240,
    "dempster": 240,
    "disjunctive": 240,
    "dubois_prade": 400,
    "yager": 240,
    "exclusive": 120,
    "pcr5": 450,
    "conjunctive_weights": 50,
    "cautious": 150,
    "bold": 150,
    "condition": 20,
    "discount": 5,
    "contextual_discount": 150,
    "coarsen": 20,
    "generalised_bayes": 20,
    "conflict": 20,
    "jousselme": 40,
    "minkowski": 40,
    "belief_interval_distance": 60,
    "discord": 40,
    "deng_entropy": 20,
    "jirousek_shenoy_entropy": 20,
    "aggregated_uncertainty": 60,
    "is_more_committed": 40,
    "best_act": 20,
    "maximality": 60,
    "appriou": 30,
    "random_masses": 30,
}


def calls(focal: ev.FocalSets, x: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], object]]:
    n, c = len(x), focal.n_clusters
    rng = np.random.default_rng(1)
    loss, rates = rng.random((9, c)), np.full(c, 0.1)
    likelihood = rng.random((n, c))
    halves = [list(range(k, k + 2)) for k in range(0, c, 2)]
    q = ev.commonality(x, focal)
    return {
        **{name: partial(getattr(ev, name), [x, y], focal) for name in RULES},
        **{name: partial(getattr(ev, name), x, y, focal) for name in PAIRS},
        **{name: partial(getattr(ev, name), x, focal) for name in SINGLE},
        "mass_from_commonality": lambda: ev.mass_from_commonality(q, focal),
        "condition": lambda: ev.condition(x, focal, [0, 1, 2]),
        "discount": lambda: ev.discount(x, focal, 0.1),
        "contextual_discount": lambda: ev.contextual_discount(x, focal, rates),
        "coarsen": lambda: ev.coarsen(x, focal, halves),
        "generalised_bayes": lambda: ev.generalised_bayes(likelihood),
        "best_act": lambda: ev.best_act(x, focal, loss, expectation="upper"),
        "maximality": lambda: ev.maximality(x, focal, loss),
        "random_masses": lambda: ev.random_masses(n, focal, rng),
    }


RULES = ("conjunctive", "dempster", "disjunctive", "dubois_prade", "yager", "exclusive")
RULES += ("cautious", "bold")
PAIRS = ("pcr5", "conflict", "jousselme", "minkowski", "belief_interval_distance")
PAIRS += ("is_more_committed",)
SINGLE = ("contour", "pignistic", "belief", "plausibility", "commonality", "conjunctive_weights")
SINGLE += ("discord", "deng_entropy", "jirousek_shenoy_entropy", "aggregated_uncertainty")
SINGLE += ("appriou",)


def seconds(call: Callable[[], object], n: int) -> float:
    """Processor seconds per million rows, the better of two."""
    took = []
    for _ in range(2):
        start = time.process_time()
        call()
        took.append(time.process_time() - start)
    return min(took) * 1e6 / n


def size(result: object) -> int:
    arrays = result if isinstance(result, tuple) else (result,)
    return sum(a.nbytes for a in arrays if isinstance(a, np.ndarray))


def beside(call: Callable[[], object]) -> float:
    """MiB that were in use at most, without the result."""
    tracemalloc.start()
    result = call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - size(result)) / 2**20


def main() -> int:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    bounds, rng = Bounds(), np.random.default_rng(0)
    full = ev.FocalSets.full(8)
    x, y = (ev.random_masses(n, full, rng, empty=True) for _ in range(2))
    listed = calls(full, x, y)
    bounds.head(f"processor seconds per million rows, 256 sets of 8 clusters ({n} rows timed)")
    for name, bound in SECONDS.items():
        bounds.at_most(name, seconds(listed[name], n), bound, digits=1)
    single = calls(full, x.astype(np.float32), y.astype(np.float32))
    bounds.head("the same in single precision")
    for name in ("conjunctive", "pcr5", "cautious", "aggregated_uncertainty"):
        bounds.note(name, seconds(single[name], n), digits=1)
    simple = ev.FocalSets.simple(8)
    small = calls(simple, *(ev.random_masses(n, simple, rng, empty=True) for _ in range(2)))
    bounds.head("the same on the 10 sets of FocalSets.simple(8)")
    for name in ("conjunctive", "dubois_prade", "pcr5", "cautious", "jousselme"):
        bounds.note(name, seconds(small[name], n), digits=2)
    bounds.head(f"MiB in use beside arguments and result; one array has {x.nbytes / 2**20:.0f}")
    for name, call in listed.items():
        bounds.at_most(name, beside(call), x.nbytes / 2**20 + 160, digits=0)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())
