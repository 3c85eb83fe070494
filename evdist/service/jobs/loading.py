"""The first stages: data brought into a store, looked at, and found fit to be clustered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral
from typing import Any

import fsspec
from numpy.typing import NDArray

from evdist.constraints import check_links
from evdist.data.dataset import (
    Contents,
    Dataset,
    Table,
    is_dataset,
    read_contents,
    write_dataset,
)
from evdist.data.tables import column_names, frames
from evdist.registry import load as function
from evdist.service.jobs.check import check_data
from evdist.service.jobs.context import Job
from evdist.service.jobs.models import load_model, read_alike
from evdist.service.jobs.scale import fit_scale
from evdist.service.jobs.watch import logger
from evdist.stores.encoding import StoreError
from evdist.stores.paths import address, exists, join


def source_stamp(job: Job) -> Any:
    """What tells, without reading it, that a source is not what it was."""
    data = job.config.data
    assert data is not None
    try:
        filesystem, path = fsspec.core.url_to_fs(data.url)
        filesystem.invalidate_cache()
        if filesystem.isdir(path):
            where = join(data.url, "zarr.json")
            filesystem, path = fsspec.core.url_to_fs(where)
        info = filesystem.info(path)
    except FileNotFoundError:
        return None
    return [str(info.get(key)) for key in ("size", "mtime", "ETag", "LastModified")]


def table_version(job: Job) -> int:
    """Of the table of objects: a job of an older version writes it anew when it is run again."""
    return 2


def load(job: Job) -> dict[str, Any]:
    """Bring the data into a store of the job; what lies in such a store already stays there."""
    wanted = job.config.data
    assert wanted is not None
    own = job.folder.path("data.zarr")
    if is_dataset(wanted.url):
        data = Dataset.open(wanted.url)
        files = []
    elif not exists(wanted.url):
        if "load" not in job.folder.stages:
            raise FileNotFoundError(f"There is no data at {address(wanted.url)}.")
        data = Dataset.open(own)
        files = ["data.zarr/zarr.json"]
        logger.warning("%s no longer exists; the copy in the job folder is used", wanted.url)
    else:
        table = _table(job)
        contents = read_contents(table, lambda n: job.tell("read", n))
        _refuse_changed(job, contents)
        data = write_dataset(table, own, contents, lambda n: job.tell("load", n, contents.n))
        files = ["data.zarr/zarr.json"]
    return {
        "content": data.fingerprint,
        "data": data.url,
        "n": data.n,
        "d": data.d,
        "columns": data.columns,
        "classes": data.classes,
        "encoding": data.encoding,
        "files": files,
    }


def _table(job: Job) -> Table:
    """The table as the configuration wants it; new objects are read as those of the model were."""
    data = job.config.data
    assert data is not None
    columns = None if data.columns is None else tuple(data.columns)
    table = Table(
        data.url, columns, data.label, data.weight, tuple(data.drop), data.delimiter, data.id
    )
    if job.config.model is not None:
        return read_alike(job.config.model, table)
    if not data.encode:
        return table
    fit = function("evdist.data.encode:fit_encoding")
    encoding = fit(
        table.raw_pieces(), data.scale or "standard", data.categories, data.drop_ids == "auto"
    )
    return replace(table, encoding=encoding)


def _refuse_changed(job: Job, contents: Contents) -> None:
    """A job goes on with the data that it began with, or not at all."""
    before = job.folder.stages.get("load")
    if before is not None and before.outputs["content"] != contents.fingerprint:
        assert job.config.data is not None
        raise StoreError(
            f"{job.config.data.url} has changed since this job began: {contents.n:,} rows of "
            f"{contents.d} now, {before.outputs['n']:,} of {before.outputs['d']} then, or other "
            "values. Run the job in a new folder."
        )


def validate(job: Job) -> dict[str, Any]:
    """Refuse what cannot be clustered, tell what is odd, find the scale of each column."""
    config, data = job.config, job.data
    assert config.data is not None
    if job.metric == "pairs":
        return {"warnings": [], "scale": None}  # a list of pairs: the estimator looks at it
    clusters = config.parameters.get("n_clusters")
    least = max(2, *(config.candidates or []), clusters if isinstance(clusters, int) else 2)
    encoding = job.folder.stages["load"].outputs.get("encoding")
    kind = None if encoding is not None else config.data.scale  # an encoding has the scale in it
    asked = kind is not None or config.parameters.get("scale") is not None
    scaled = asked or encoding is not None or job.metric == "precomputed"
    found = check_data(
        data, least=least, scaled=scaled, tell=lambda n: job.tell("validate", n, data.n)
    )
    links(job)  # refused now rather than after the sampling
    if config.start is not None:
        load_model(config.start)  # likewise
    told = [*_filled(encoding), *found.warnings]
    for sentence in told:
        logger.warning("%s", sentence)
    scale = fit_scale(kind, data, found)
    return {"warnings": told, "scale": None if scale is None else scale.to_json()}


def _filled(encoding: list[dict[str, Any]] | None) -> list[str]:
    """What is told of missing values; pandas is loaded only where there was something to encode."""
    if encoding is None:
        return []
    return function("evdist.data.encode:Encoding").of_json(encoding).told()


def links(job: Job) -> dict[str, NDArray]:
    """Must-link and cannot-link pairs as `fit` takes them; none when there are none."""
    given = job.config.links
    must, cannot = list(given.must), list(given.cannot)
    if given.url is not None:
        for i, j, link in _linked(given.url):
            (must if link == "must" else cannot).append((i, j))
    if not must and not cannot:
        return {}
    checked_must, checked_cannot = check_links(must or None, cannot or None, job.data.n)
    return {"must_link": checked_must, "cannot_link": checked_cannot}


def _linked(url: str) -> Iterator[tuple[int, int, str]]:
    """Rows (i, j, "must" or "cannot") of a table of links."""
    wanted = ["i", "j", "link"]
    there = column_names(url)
    if there is None or not set(wanted) <= set(there):
        raise ValueError(
            f"{url} must be a CSV or Parquet table with the columns i, j and link, got "
            f"{', '.join(there or ['no names'])}."
        )
    row = 0
    for frame in frames().pieces(url, wanted):
        for i, j, link in frame.itertuples(index=False):
            if link not in ("must", "cannot"):
                raise ValueError(
                    f"Column 'link' of {url} must hold 'must' or 'cannot', but row {row} holds "
                    f"{link!r}."
                )
            for name, value in (("i", i), ("j", j)):
                if not isinstance(value, Integral):
                    raise ValueError(
                        f"Column {name!r} of {url} must hold numbers of objects, from 0, but row "
                        f"{row} holds {value!r}."
                    )
            yield int(i), int(j), link
            row += 1
