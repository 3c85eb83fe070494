"""How many threads."""

from __future__ import annotations

import os
from numbers import Integral

__all__ = ["thread_count"]


def thread_count(n_jobs: int | None) -> int:
    """scikit-learn's meaning of `n_jobs`, for threads: None and -1 are all cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if n_jobs is None:
        return cores or 1
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be an integer other than 0, or None or -1 for all cores, got {n_jobs!r}."
        )
    return max(1, (cores or 1) + 1 + int(n_jobs)) if n_jobs < 0 else int(n_jobs)
