"""The flow `nightly`: a data set that grows is fitted again, from where it was the night before."""

from __future__ import annotations

from datetime import UTC, datetime

from prefect import flow

from evdist.service.config import JobConfig
from evdist.service.jobs import stages_of
from evdist.service.jobs.growing import last_done
from evdist.stores.paths import join
from flows.stages import enter_stages, reachable

__all__ = ["nightly"]


@flow(name="nightly", persist_result=False)
def nightly(config: JobConfig, name: str | None = None) -> str:
    """Fit the data as they are now; the folder is the result.

    `config.folder` holds one job folder for each run, called `name` (the date by default). The fit
    starts from the masses of the last finished one: old objects keep theirs, new ones are placed
    by its model, and a few sweeps settle them all.
    """
    name = name or datetime.now(UTC).strftime("%Y-%m-%d")
    values = config.model_dump(mode="json", exclude_none=True)
    values["folder"] = join(config.folder, name)
    before = last_done(config.folder, other_than=name)
    if before is not None:
        values["start"] = before
    job = reachable(JobConfig.of(**values))
    return enter_stages(job, stages_of(job)).folder.url
