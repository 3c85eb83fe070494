"""How many threads, our own and those of BLAS."""

from __future__ import annotations

from numbers import Integral

from joblib import cpu_count
from threadpoolctl import threadpool_limits


def thread_count(n_jobs: int | None) -> int:
    """scikit-learn's meaning of `n_jobs`, for threads: None and -1 are all cores.

    The cores are those that this process may use, by affinity and by the quota of a container. Not
    joblib's `effective_n_jobs`: it says 1 for None, and 1 in every process that Dask has started.
    """
    if n_jobs is None:
        return cpu_count()
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be an integer other than 0, or None or -1 for all cores, got {n_jobs!r}."
        )
    return max(1, cpu_count() + 1 + int(n_jobs)) if n_jobs < 0 else int(n_jobs)


def one_blas_thread() -> threadpool_limits:
    """Within this context BLAS has one thread.

    For L-BFGS, whose matrices are so small that a second thread waits more than it works: it took
    five times the processor's time of a fit.
    """
    return threadpool_limits(1, user_api="blas")
