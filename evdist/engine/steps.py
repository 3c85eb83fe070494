"""A worker tells the scheduler which step of a sweep it has done, for the monitor."""

from __future__ import annotations

import sys

#: Topic of these events on the scheduler.
STEPS = "evdist-steps"


def tell_step(step: int, steps: int, rows: int, **more: int) -> None:
    """Say that this worker has updated `rows` rows of colour step `step` of `steps`.

    An owner of partitions tells `partitions`, how many it has, rows `moved` and bytes `received`.
    """
    # A task that runs on a worker finds the library loaded.
    worker = sys.modules["distributed"].get_worker()
    event = {"worker": worker.address, "step": step, "steps": steps, "rows": rows, **more}
    worker.log_event(STEPS, event)
