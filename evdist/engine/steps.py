"""A worker tells the scheduler which step of a sweep it has done, for the dashboard."""

from __future__ import annotations

import sys

__all__ = ["STEPS", "tell_step"]

#: Topic of these events on the scheduler.
STEPS = "evdist-steps"


def tell_step(step: int, steps: int, rows: int) -> None:
    """Say that this worker has updated `rows` rows of colour step `step` of `steps`."""
    # A task that runs on a worker finds the library loaded; no other code calls this.
    worker = sys.modules["distributed"].get_worker()
    worker.log_event(STEPS, {"worker": worker.address, "step": step, "steps": steps, "rows": rows})
