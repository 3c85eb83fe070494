"""Commands that look after a storage: what jobs take, which go, what no job needs any more."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from evdist.service.cli.late import Late
from evdist.service.cli.options import ApiUrl, Json, Storage
from evdist.service.cli.out import errors, say, show, table

Client: Any = Late("evdist.service.client:Client")
total: Any = Late("evdist.service.jobs.keeping:total")
size: Any = Late("evdist.stores.paths:size")

jobs = typer.Typer(help="List jobs, remove jobs, and clean up a storage.", no_args_is_help=True)


@jobs.command("list")
def list_(storage: Storage = None, api_url: ApiUrl = None, json: Json = False) -> None:
    """List jobs with their state and size, newest first."""
    with errors(json):
        client = Client(storage, api_url)
        rows = [
            {
                "id": folder.id,
                "state": str(folder.state),
                "bytes": size(folder.url),
                "created": time.strftime("%Y-%m-%d %H:%M", time.localtime(folder.created)),
                "folder": folder.url,
            }
            for folder in (job.folder for job in client.jobs())
        ]
        if json:
            show({"jobs": rows, "bytes": total(client.storage)})
            return
        table(
            ["id", "state", "size", "created"],
            [[row["id"], row["state"], _words(int(str(row["bytes"]))), row["created"]]
             for row in rows],
        )  # fmt: skip
        count = "1 job" if len(rows) == 1 else f"{len(rows)} jobs"
        say(f"{count}; with all data {_words(total(client.storage))} in {client.storage}")


@jobs.command()
def rm(
    job: Annotated[list[str], typer.Argument(metavar="JOB...", help="Ids or folders of jobs.")],
    storage: Storage = None,
    api_url: ApiUrl = None,
) -> None:
    """Remove jobs and their files, but not uploaded data. Cancel running jobs first."""
    with errors():
        client = Client(storage, api_url)
        for name in job:
            say(f"{name}: {_words(client.delete(name))} are free")


@jobs.command()
def gc(
    days: Annotated[
        float | None,
        typer.Option(
            envvar="EVDIST_TTL_DAYS", min=0, help="Also remove jobs that ended this many days ago."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be removed.")
    ] = False,
    storage: Storage = None,
    api_url: ApiUrl = None,
    json: Json = False,
) -> None:
    """Remove unused uploads, remains of deleted jobs and, with --days, old jobs."""
    with errors(json):
        found = Client(storage, api_url).collect(days=days, dry_run=dry_run)
        if json:
            show(vars(found))
            return
        for name in found.jobs:
            say(f"job {name}")
        for name in found.uploads:
            say(f"data {name}")
        if found.unread:
            say(f"no data are removed while these cannot be read: {', '.join(found.unread)}")
        would = "would be free" if dry_run else "are free"
        say(f"{len(found.jobs)} jobs, {len(found.uploads)} uploads: {_words(found.bytes)} {would}")


def _words(amount: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"
