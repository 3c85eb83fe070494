"""What a Dask scheduler loads (``--preload evdist.service.monitor.scheduler``) to show jobs.

The page needs to be known before the scheduler's web server starts, which is when it imports the
modules named in ``distributed.scheduler.http.routes``; the metrics need the scheduler itself, which
a preload gets. `settings` has both, for `dask.config.set`; as environment variables:

    DASK_DISTRIBUTED__SCHEDULER__PRELOAD='["evdist.service.monitor.scheduler"]'
    DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES='[..., "evdist.service.monitor.page"]'
"""

from __future__ import annotations

from typing import Any

import dask
import prometheus_client
from distributed.dashboard import scheduler as dashboard

from evdist.service.monitor.metrics import JobMetrics

_PAGE = "evdist.service.monitor.page"
_ME = "evdist.service.monitor.scheduler"
_collectors: dict[str, JobMetrics] = {}


def settings() -> dict[str, Any]:
    """Dask's settings with our page and our metrics added to what is there."""
    routes = list(dask.config.get("distributed.scheduler.http.routes"))
    preload = list(dask.config.get("distributed.scheduler.preload"))
    return {
        "distributed.scheduler.http.routes": [*routes, *([_PAGE] if _PAGE not in routes else [])],
        "distributed.scheduler.preload": [*preload, *([_ME] if _ME not in preload else [])],
    }


async def dask_setup(scheduler: Any) -> None:
    """Called by Dask when the scheduler starts."""
    # The web server is up and has its own copy of this table; the list in it is shared.
    pages = dashboard.template_variables(scheduler)["pages"]
    if "evdist" not in pages:
        pages.append("evdist")
    if not _collectors:  # one process has one set of metrics
        _collectors[scheduler.id] = JobMetrics(scheduler)
        prometheus_client.REGISTRY.register(_collectors[scheduler.id])


async def dask_teardown(scheduler: Any) -> None:
    """Called by Dask when the scheduler ends."""
    collector = _collectors.pop(scheduler.id, None)
    if collector is not None:
        prometheus_client.REGISTRY.unregister(collector)
