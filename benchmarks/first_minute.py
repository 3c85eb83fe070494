"""What a new user waits for: import, help, Tab, the first fit and the second; the size installed.

    python benchmarks/first_minute.py [--python VENV/bin/python] [--repeats 3] [--cli evdist.cli]

Every time is that of a new process; the least of some repeats is printed, in seconds on the clock
and of the processor (they differ where other programs run). The first fit compiles into an empty
folder, as after a clean install; the second finds what the first has left. It is README's example,
EVCLUS on the iris, and ECM on the same data. The size is that of site-packages, byte code and all.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

FIT = """
from sklearn.datasets import load_iris
from evdist import {name}
{name}(n_clusters=3, random_state=0).fit(load_iris().data)
"""
SIZE = """
import importlib.metadata, pathlib, sysconfig
place = pathlib.Path(sysconfig.get_path("purelib"))
print(sum(p.stat().st_size for p in place.rglob("*") if p.is_file() and not p.is_symlink()))
print(len({d.metadata["Name"] for d in importlib.metadata.distributions(path=[str(place)])}))
"""
#: As the shell asks when the Tab key is pressed after `evdist cluster --algorithm e`.
TAB = {"_EVDIST_COMPLETE": "complete_bash", "COMP_WORDS": "evdist cluster --algorithm e"}
TAB["COMP_CWORD"] = "3"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="interpreter to measure")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cli", default="evdist.service.cli", help="evdist.cli in version 0.1.0")
    options = parser.parse_args()

    def python(*words: str, **environment: str) -> tuple[float, float]:
        return taken([options.python, *words], environment)

    command = ("-c", f"import sys; sys.argv[0] = 'evdist'; from {options.cli} import main; main()")
    show("import evdist", [python("-c", "import evdist") for _ in range(options.repeats)])
    show("evdist --help", [python(*command, "--help") for _ in range(options.repeats)])
    show("Tab", [python(*command, **TAB) for _ in range(options.repeats)])
    for name in ("EVCLUS", "ECM"):
        first, second = [], []
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as folder:
                first.append(python("-c", FIT.format(name=name), NUMBA_CACHE_DIR=folder))
                second.append(python("-c", FIT.format(name=name), NUMBA_CACHE_DIR=folder))
        show(f"first fit, {name}", first)
        show(f"second fit, {name}", second)
    done = subprocess.run([options.python, "-c", SIZE], capture_output=True, text=True, check=True)
    size, packages = map(int, done.stdout.split())
    print(f"{'installed':20} {size / 1e6:.0f} MB in {packages} packages")


def taken(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds on the clock and of the processor that a command takes."""
    used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        words, env={**os.environ, **environment}, capture_output=True, check=True, cwd="/"
    )
    clock, now = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime


def show(what: str, times: list[tuple[float, float]]) -> None:
    """The least of each, as a line."""
    clock, processor = (min(column) for column in zip(*times, strict=True))
    print(f"{what:20} {clock:6.2f} s, processor {processor:6.2f} s", flush=True)


if __name__ == "__main__":
    main()
