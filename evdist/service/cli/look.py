"""Commands that look: at a result, at a store, at this installation."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evdist.registry import ALGORITHMS
from evdist.service.cli.late import Late
from evdist.service.cli.options import ApiUrl, Deployment, Json, Storage
from evdist.service.cli.out import Exit, errors, facts, say, show, table

if TYPE_CHECKING:
    from evdist.service.jobs import JobFolder
    from evdist.service.jobs.doctor_prefect import Check

demonstration: Any = Late("evdist.service.demo")
preparing: Any = Late("evdist.service.warm")
Dataset: Any = Late("evdist.data.dataset:Dataset")
PairStore: Any = Late("evdist.evclus.pair_store:PairStore")
CredalPartition: Any = Late("evdist.partition:CredalPartition")
ConfigError: Any = Late("evdist.service.config:ConfigError")
whole: Any = Late("evdist.data.frames:whole")
write_report: Any = Late("evdist.report:write_report")
jobs: Any = Late("evdist.service.jobs")
examine: Any = Late("evdist.service.jobs.doctor:examine")
encoding: Any = Late("evdist.stores.encoding")
paths: Any = Late("evdist.stores.paths")
level_told: Any = Late("evdist.partition.decisions:level_told")

Place = Annotated[str, typer.Argument(help="A job folder, a model, or a store (.zarr, .npz).")]


def report(
    place: Place,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")] = Path("report.html"),
    json: Json = False,
) -> None:
    """Write the HTML report of a job, or of a stored partition."""
    with errors(json):
        url = paths.address(place)
        content = paths.read_bytes(paths.join(url, "report.html"))
        if content is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            paths.replace_bytes(str(out.absolute()), content)
        else:
            inner = paths.join(url, "masses.zarr")
            write_report(
                out, CredalPartition.load(inner if paths.exists(inner) else url), title=place
            )
        show({"report": str(out.absolute())}) if json else say(f"look at: {out}")


def describe(
    place: Place,
    data: Annotated[
        str | None,
        typer.Option(
            help="Another table of the same objects, in the same order: .csv or .parquet."
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(help="Column of --data that holds texts: their words name the clusters."),
    ] = None,
    json: Json = False,
) -> None:
    """Say what each cluster of a finished job is: sizes, what sets it apart, members."""
    with errors(json):
        found = _described(paths.address(place), data, text)
        show(found.to_json()) if json else say(str(found))


def _described(url: str, data: str | None, text: str | None) -> Any:
    if text is not None and data is None:
        raise ConfigError("--text names a column of the table that --data names: give both.")
    if not paths.exists(url):
        raise encoding.StoreNotFoundError(f"There is nothing at {url}.")
    is_job = paths.exists(paths.join(url, "manifest.json"))
    if is_job and data is None:
        return jobs.JobResult(jobs.JobFolder.open(url)).describe()
    inner = paths.join(url, "masses.zarr")
    partition = CredalPartition.load(inner if paths.exists(inner) else url)
    level = None
    if is_job:
        level = level_told(jobs.JobResult(jobs.JobFolder.open(url)).metrics)
    return partition.describe(None if data is None else whole(data), text=text, level=level)


def inspect(place: Place, json: Json = False) -> None:
    """Show what a folder or store contains, and check it for damage."""
    with errors(json):
        found = _inspected(paths.address(place))
        show(found) if json else facts(found)


def _inspected(url: str) -> dict[str, Any]:
    if not paths.exists(url):
        raise encoding.StoreNotFoundError(f"There is nothing at {url}.")
    if paths.exists(paths.join(url, "manifest.json")):
        return _job(jobs.JobFolder.open(url))
    if paths.exists(paths.join(url, "model.json")):
        content = paths.read_bytes(paths.join(url, "model.json")) or b"{}"
        with encoding.as_written(paths.join(url, "model.json"), "Save the model again."):
            what = f"model of {json_format.loads(content).get('estimator')}"
        return {"what": what, **_masses(paths.join(url, "masses.zarr"))}
    for reader in (_masses, _data, _pairs):
        try:
            return reader(url)
        except encoding.StoreError as error:
            if "must hold evdist" not in str(error):
                raise
    raise encoding.StoreError(f"{url} holds nothing that evdist wrote.")


def _job(folder: JobFolder) -> dict[str, Any]:
    known: dict[str, Any] = {
        "what": f"job {folder.id}",
        "state": str(folder.state),
        "task": folder.config.task,
        "algorithm": folder.config.algorithm,
        "parameters": folder.config.parameters,
        **{f"stage {name}": f"done in {s.seconds:.2f} s" for name, s in folder.stages.items()},
    }
    if folder.error:
        known["error"] = folder.error
    if folder.state is jobs.JobState.DONE:
        known["masses"] = f"whole, {_masses(folder.path('masses.zarr'))['objects']} objects"
    if folder.has("metrics.json"):
        metrics = jobs.JobResult(folder).metrics
        known |= {k: v for k, v in metrics.items() if isinstance(v, int | float) and k != "job"}
    return known


def _masses(url: str) -> dict[str, Any]:
    partition = CredalPartition.load(url)
    with encoding.reading(url, "Run the job again in a new folder."):
        summary = partition.summary()  # of every chunk
    return {
        "what": "credal partition",
        "objects": f"{partition.n_objects:,}",
        "clusters": partition.n_clusters,
        "focal sets": ", ".join(partition.focal_sets.names[:12]),
        "sure": f"{summary.n_sure:,}",
        "between": f"{summary.n_between:,}",
        "outliers": f"{summary.n_outliers:,}",
        "nonspecificity": f"{summary.nonspecificity:.4f}",
    }


def _data(url: str) -> dict[str, Any]:
    data = Dataset.open(url)
    return {
        "what": "data set",
        "objects": f"{data.n:,}",
        "columns": data.d if data.columns is None else ", ".join(data.columns[:12]),
        "classes": "none" if data.classes is None else len(data.classes),
        "fingerprint": data.fingerprint[:16],
    }


def _pairs(url: str) -> dict[str, Any]:
    store = PairStore.open(url)
    return {
        "what": "pair store",
        "objects": f"{store.graph.n:,}",
        "pairs per object": store.graph.k,
        "colours": store.graph.colours,
        "metric": store.metric,
        "seed": store.seed,
    }


def algorithms(json: Json = False) -> None:
    """List the algorithms, with their estimators and documentation pages."""
    names = ("name", "estimator", "summary", "page")
    rows = [[getattr(entry, name) for name in names] for entry in ALGORITHMS.values()]
    if json:
        show([dict(zip(names, row, strict=True)) for row in rows])
    else:
        table(list(names), rows)


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")] = Path(
        "demo"
    ),
) -> None:
    """Cluster an included table, with ids, categories and blanks; writes its report."""
    demonstration.main(["--out", str(out)])


def warm(
    algorithms: Annotated[
        list[str] | None,
        typer.Argument(help="Algorithms to compile; evclus and ecm by default."),
    ] = None,
    many: Annotated[
        bool, typer.Option("--many", help="EVCLUS with 25 clusters or more, too: 20 s.")
    ] = False,
) -> None:
    """Compile the algorithms in advance, so that the first fit does not have to wait."""
    with errors():
        for name in algorithms or preparing.USUAL:
            preparing.warm(name, many=many)
            say(f"{name}: ready")


def doctor(
    storage: Storage = None,
    api_url: ApiUrl = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")] = None,
    deployment: Deployment = None,
    json: Json = False,
) -> None:
    """Check versions, storage permissions, servers, deployment, work pool and clocks."""
    with errors(json):
        checks = examine(storage, api_url, scheduler, deployment)
        if json:
            show([vars(check) for check in checks])
        else:
            table(["", "what", "found"], [_row(check) for check in checks])
        bad = [check.what for check in checks if not check.good]
        if bad:
            raise jobs.JobError(f"Not in order: {', '.join(bad)}.")
        raise typer.Exit(int(Exit.OK))


def _row(check: Check) -> list[str]:
    return ["ok" if check.good else "!!", check.what, check.found]
