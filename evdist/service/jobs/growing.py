"""A folder of jobs on the same growing data, one for each run."""

from __future__ import annotations

from evdist.service.jobs.folder import JobFolder, JobState
from evdist.stores.encoding import StoreError
from evdist.stores.paths import address, children, join


def last_done(url: str, *, other_than: str) -> str | None:
    """The folder of the last job that was finished, None before any."""
    found = []
    for name in children(address(url)):
        if name == other_than:
            continue
        try:
            folder = JobFolder.open(join(address(url), name))
        except StoreError:
            continue  # not a job
        if folder.state is JobState.DONE:
            found.append((folder.created, folder.url))
    return max(found)[1] if found else None
