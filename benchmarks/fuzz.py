"""Configurations, manifests, stores and tables that no program should have written.

    python benchmarks/fuzz.py [--cases 10000] [--seed 0] [--kind table]

Every case is made from its seed (tests/fuzz_cases.py) and met by the calls that people make: the
command line, the client, a run. It must end well or with an error that the command line tells in
one sentence, write nothing outside of its own folders, start and connect to nothing, and leave its
inputs and other jobs as they were. One process, no servers.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from bounds import Bounds

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fuzz_cases import KINDS, Defect, Shop, try_case  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--kind", choices=KINDS, help="one kind only")
    parser.add_argument("--show", type=int, default=3, help="defects shown of each kind")
    given = parser.parse_args()
    kinds = (given.kind,) if given.kind else KINDS
    bounds = Bounds()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        shop = Shop.open(Path(name) / "shop")
        bounds.head(f"{given.cases} cases")
        total = 0
        for number, kind in enumerate(kinds):
            cases = given.cases // len(kinds) + (number < given.cases % len(kinds))
            ends: Counter[str] = Counter()
            began, longest, defects = time.perf_counter(), 0.0, 0
            for seed in range(given.seed, given.seed + cases):
                start = time.perf_counter()
                try:
                    ends[try_case(shop, kind, seed, Path(name))] += 1
                except (Defect, AssertionError) as error:
                    defects += 1
                    if defects <= given.show:
                        print(f"--- {kind} {seed}: {str(error)[-1800:]}")
                longest = max(longest, time.perf_counter() - start)
            total += cases
            bounds.at_most(f"{kind}: defects of {cases}", defects, 0, digits=0)
            seconds = time.perf_counter() - began
            told = ", ".join(f"{what} {count}" for what, count in ends.most_common())
            print(f"  {seconds:.0f} s, the longest {longest:.2f} s; {told}")
        bounds.note("cases", total, digits=0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        bounds.note("peak memory, MB", peak, digits=0)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())
