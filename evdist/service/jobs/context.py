"""A run and its stages: what every stage has at hand, and when one is entered again.

A stage is entered when it is not in the manifest, or stands there for something else. What a
stopped one has left behind is used where it can be (data, pairs, checkpoints) and replaced where
it cannot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from evdist.data.dataset import Dataset
from evdist.data.readers import ArrayReader, RowReader, Transformed
from evdist.data.scale import Scale
from evdist.engine.progress import Progress
from evdist.partition import CredalPartition, Summary
from evdist.registry import ALGORITHMS, Algorithm, load
from evdist.service.config import JobConfig
from evdist.service.jobs.allowed import check_address
from evdist.service.jobs.folder import JobFolder, Stage
from evdist.service.jobs.models import load_model, model_level
from evdist.service.jobs.watch import Watch, logger
from evdist.stores.fingerprints import fingerprint


@dataclass
class Job:
    """A run: where it writes, what it was asked for, who listens, and how it comes to Dask."""

    folder: JobFolder
    config: JobConfig
    watch: Watch
    connect: Callable[[], Any]
    #: Stages of every task, for a stage that runs jobs of its own (select).
    tasks: Mapping[str, tuple[StageWork, ...]]
    #: The estimator whose `sample_pairs` has run in this process: it holds the groups for the fit.
    sampler: Any = None

    @cached_property
    def client(self) -> Any:
        """The Dask client, None for threads of this process; there once a stage asks for it."""
        return self.connect()

    @property
    def algorithm(self) -> Algorithm:
        return ALGORITHMS[self.config.algorithm]

    @property
    def metric(self) -> Any:
        """The algorithm's metric, None where it has no such parameter."""
        default = self.algorithm.parameters.model_fields.get("metric")
        return self.config.parameters.get("metric", default and default.default)

    @cached_property
    def data(self) -> Dataset:
        url = self.folder.stages["load"].outputs["data"]
        check_address(url, "the manifest")  # which lies where the job's owner can write
        return Dataset.open(url)

    @property
    def scale(self) -> Scale | None:
        return Scale.of_json(self.folder.stages["validate"].outputs["scale"])

    @cached_property
    def X(self) -> NDArray:
        """The rows, on their scale, in memory."""
        rows = self.data.rows()
        return rows if self.scale is None else self.scale(rows)

    @property
    def reader(self) -> RowReader:
        """The same rows where they lie, for a fit that reads them in parts."""
        rows = ArrayReader(self.data.X)
        return rows if self.scale is None else Transformed(rows, self.scale)

    @cached_property
    def model(self) -> Any:
        """The fitted estimator, once it is there: that of this run, or loaded; None without one."""
        return self.algorithm.cls.load(self.folder.url) if self.folder.has("model.json") else None

    @cached_property
    def placing(self) -> tuple[Any, Scale | None]:
        """The model that places new objects, and the scale of its data."""
        assert self.config.model is not None
        return load_model(self.config.model)

    @cached_property
    def partition(self) -> CredalPartition:
        """The answer, once it is there: that of this run, or loaded."""
        return CredalPartition.load(self.folder.path("masses.zarr")).in_memory()

    @cached_property
    def summary(self) -> Summary:
        """The answer in numbers; new objects are judged at the level of their model."""
        level = None if self.config.model is None else model_level(self.config.model)
        return self.partition.summary(level=level)

    def tell(self, stage: str, done: int = 0, of: int = 0, unit: str = "row") -> None:
        self.watch(Progress(stage, done, of, unit=unit))


@dataclass(frozen=True)
class StageWork:
    """A stage: its name, and its function as MODULE:FUNCTION, imported when it is entered."""

    name: str
    function: str
    #: MODULE:FUNCTION of what decides the result beside the configuration and the stage before.
    decided_by: str | None = None


def enter(job: Job, stage: StageWork, before: str) -> str:
    """Do a stage unless it is done; the fingerprint of what it was made from."""
    depends = None if stage.decided_by is None else load(stage.decided_by)(job)
    mark = fingerprint(stage.name, job.config.fingerprint, before, depends)
    done = job.folder.done(stage.name, mark)
    if done is None:
        logger.info("%s: begins", stage.name)
        began = time.perf_counter()
        outputs = load(stage.function)(job)
        seconds = time.perf_counter() - began
        job.folder.finish(stage.name, Stage(mark, outputs, seconds, time.time()))
        logger.info("%s: done in %.2f s", stage.name, seconds)
    else:
        logger.info("%s: was done before", stage.name)
    content = job.folder.stages[stage.name].outputs.get("content", mark)
    return str(content)


def enter_all(job: Job, stages: Sequence[StageWork]) -> None:
    """Stage after stage, each made from what the one before has left."""
    before = ""
    for stage in stages:
        before = enter(job, stage, before)
