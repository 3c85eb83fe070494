"""Independent tasks on a Dask cluster that all read one table, whatever happens to the workers.

Scattered data is gone when its workers are. Here the table is made by tasks, block by block, so
that the scheduler can make it again; a task whose worker was lost is run anew by another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["map_tasks"]

#: Bytes of the table in one message: Dask warns of larger ones.
_PART_BYTES = 4 << 20


def map_tasks(
    client: Client, task: Callable[[NDArray, Any], Any], table: NDArray, items: Iterable[Any]
) -> Iterator[Any]:
    """`task(table, item)` for every item, in the order in which they are done.

    Parameters
    ----------
    client : distributed.Client
    task : callable
        Sent with every item: keep it small. Its table can be written.
    table : (n, ...) array
    """
    rows = max(1, _PART_BYTES // max(table[:1].nbytes, 1))
    parts = [
        client.submit(_part, table[lo : lo + rows], pure=False) for lo in range(0, len(table), rows)
    ]
    whole = client.submit(_join, parts, pure=False)
    jobs = [client.submit(_run, task, whole, item, pure=False, retries=3) for item in items]
    # Whoever has a client has loaded its library; nobody else pays for it.
    with client.as_current():  # it need not be the process's only one
        done = sys.modules["distributed"].as_completed(jobs)
    for job in done:
        yield job.result()


def _part(table: NDArray) -> NDArray:
    return table


def _join(parts: list[NDArray]) -> NDArray:
    return np.concatenate(parts)


def _run(task: Callable[[NDArray, Any], Any], table: NDArray, item: Any) -> Any:
    # What came over the network is read-only, which numba compiles for anew.
    return task(np.require(table, requirements="W"), item)
