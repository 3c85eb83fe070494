"""The faults seen on version 0.1.0, asked as questions of any checkout of this package.

    python benchmarks/first_faults.py [--source CHECKOUT] [--only 2,7] [--list]

Tests name modules that older versions do not have, so there they fail before they begin. These
questions use public names, or names that are found in both layouts, and real processes: Dask's
scheduler and workers, an S3 server, with some a Prefect server. Each runs in a process of its own
with a deadline; no end is an answer, too. Exits with an error where an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve()
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Question:
    """What is asked, of which item of the list, and how long an answer may take."""

    item: int
    name: str
    asked: str
    seconds: float
    ask: Callable[[Path], str]


QUESTIONS: list[Question] = []


def question(item: int, asked: str, seconds: float = 120.0):
    """A function that gives "" where all is well, or what is wrong."""

    def keep(ask: Callable[[Path], str]) -> Callable[[Path], str]:
        QUESTIONS.append(Question(item, ask.__name__, asked, seconds, ask))
        return ask

    return keep


def answer(one: Question, source: Path) -> tuple[bool, str]:
    """Ask it of a checkout, in a process group of its own, and clean up after it."""
    with tempfile.TemporaryDirectory(prefix="first-faults-") as folder:
        paths = [source, ROOT / "tests", ROOT / "benchmarks"]
        env = {
            **os.environ, "PYTHONPATH": ":".join(map(str, paths)), "OMP_NUM_THREADS": "1",
            "FIRST_FAULTS_SOURCE": str(source), "EVDIST_HOME": folder, "HOME": folder,
        }  # fmt: skip
        env["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"first-faults-{source.name}")
        command = [sys.executable, str(HERE), "--ask", one.name, "--folder", folder]
        log = Path(folder) / "said"
        with log.open("wb") as said, (Path(folder) / "errors").open("wb") as errors:
            child = subprocess.Popen(
                command, stdout=said, stderr=errors, env=env, cwd=source, start_new_session=True
            )
            try:
                child.wait(one.seconds)
            except subprocess.TimeoutExpired:
                _end_all(folder)
                return False, f"no end after {one.seconds:.0f} s"
            finally:
                _end_all(folder)
        lines = log.read_text().strip().splitlines()
        last = lines[-1] if lines else ""
        if not last.startswith("ANSWER "):
            told = (Path(folder) / "errors").read_text().strip().splitlines()
            return False, told[-1] if told else "it ended without an answer"
        words = json.loads(last.removeprefix("ANSWER "))
        return not words, words or "as it should be"


def _end_all(folder: str) -> None:
    """Every process whose environment names this folder: servers and jobs in the background."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        pid = int(path.parent.name)
        try:
            if pid != os.getpid() and f"EVDIST_HOME={folder}".encode() in path.read_bytes():
                os.kill(pid, signal.SIGKILL)
        except OSError:
            continue


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=ROOT)
    parser.add_argument("--only", help="items, or names of questions, with commas")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    import first_questions  # all fill QUESTIONS of the module of that name
    import first_small
    import first_storage
    from first_faults import QUESTIONS as questions

    if given.ask:
        modules = (first_questions, first_storage, first_small)
        (ask,) = {getattr(module, given.ask) for module in modules if hasattr(module, given.ask)}
        print("ANSWER " + json.dumps(ask(given.folder)), flush=True)
        os._exit(0)  # threads that hang are part of the answer, not of the end
    wanted = given.only.split(",") if given.only else None
    wrong = 0
    if not given.list:
        answer(Question(0, "warm_up", "", 300.0, str), given.source.resolve())
    for one in questions:
        if wanted and str(one.item) not in wanted and one.name not in wanted:
            continue
        if given.list:
            print(f"{one.item:>3}  {one.name:<28} {one.asked}")
            continue
        began = time.monotonic()
        good, words = answer(one, given.source.resolve())
        wrong += not good
        took = time.monotonic() - began
        print(f"{one.item:>3}  {one.name:<28} {'good ' if good else 'WRONG'} {took:4.0f} s  "
              f"{words[:300]}", flush=True)  # fmt: skip
    print(f"\n{wrong} wrong" if not given.list else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parent)]
    sys.exit(main())
