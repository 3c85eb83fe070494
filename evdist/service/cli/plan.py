"""The command that says what a cluster must have for a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evdist.service.cli.late import Late
from evdist.service.cli.options import Json
from evdist.service.cli.out import errors, facts, say, show

if TYPE_CHECKING:
    from evdist.service.jobs.plan import Plan


ConfigError: Any = Late("evdist.service.config:ConfigError")
planning: Any = Late("evdist.service.jobs.plan")


def plan(
    objects: Annotated[str, typer.Option(help="Number of objects, such as 1e8.")],
    features: Annotated[str, typer.Option(help="Number of attributes.")],
    clusters: Annotated[str, typer.Option("--clusters", "-c", help="Number of clusters.")],
    pairs: Annotated[int, typer.Option(min=1, help="Dissimilarities kept per object.")] = 100,
    focal_sets: Annotated[
        Literal["simple", "pairs", "full"], typer.Option(help="Focal sets.")
    ] = "simple",
    workers: Annotated[int | None, typer.Option(min=1, help="Dask workers.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads per worker.")] = 4,
    network: Annotated[float, typer.Option(help="Gigabits per second between workers.")] = 10.0,
    jobs: Annotated[int, typer.Option(min=1, help="Number of such jobs at the same time.")] = 1,
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Plan a fit in partitions owned by the workers.")
    ] = False,
    values: Annotated[
        Path | None, typer.Option(help="Write a values file for the Helm chart.")
    ] = None,
    json: Json = False,
) -> None:
    """Estimate what EVCLUS needs on a cluster: memory, storage, time per sweep, Helm values."""
    with errors(json):
        found = planning.Plan.of(
            _whole("objects", objects), _whole("features", features), _whole("clusters", clusters),
            pairs=pairs, focal_sets=focal_sets, workers=workers, threads=threads, network=network,
            jobs=jobs,
            partitions=partitions,
        )  # fmt: skip
        if values is not None:
            values.write_text(found.values(), encoding="utf-8")
        told = {
            "workers": found.workers,
            "threads per worker": found.threads,
            "jobs at the same time": found.jobs,
            "memory per worker": _size(found.worker_limit),
            **({"at least, from disk": _size(found.worker_least)} if partitions else {}),
            "memory of the scheduler": _size(found.scheduler_limit),
            "memory of the flow run": _size(found.run_limit),
            "storage": _size(found.storage),
            "time per full sweep": f"{found.sweep_seconds:.3g} s",
            "of it computing": f"{found.compute_seconds:.3g} s",
            "received by a worker per sweep": _size(found.moved),
        }
        if json:
            show({**vars(found), **_numbers(found), "values": found.values()})
            return
        facts(told)
        if values is None:
            say()
            say(found.values().rstrip())
        else:
            say(f"values for the chart: {values}")


def _whole(name: str, text: str) -> int:
    """A whole number, in either way of writing: 100000000 or 1e8."""
    try:
        value = float(text)
        if value != int(value):
            raise ValueError
    except (ValueError, OverflowError) as error:
        message = f"--{name} needs a whole number, such as 100000000 or 1e8, got {text!r}."
        raise ConfigError(message) from error
    return int(value)


def _numbers(found: Plan) -> dict[str, float]:
    names = ("worker_limit", "scheduler_limit", "run_limit", "storage", "moved",
             "compute_seconds", "sweep_seconds")  # fmt: skip
    return {name: getattr(found, name) for name in names}


def _size(size: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TiB"
