"""What a job of EVCLUS on a Dask cluster needs, before there is a cluster.

Memory and storage are those that a fit checks before it starts (`evdist.evclus.memory`), with what
a job holds beside them. Time per sweep is a model whose constants were measured; benchmarks/plan.py
measures it again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from evdist.engine.ownership import received, shared_out
from evdist.evclus.groups import SPARSE_FROM, near_share
from evdist.evclus.memory import projected, row_words, stored
from evdist.evclus.partitions.graph import odd_offsets
from evdist.kernels.shuffle import Shuffle
from evdist.kernels.vector import padded_width

#: CPU seconds of one thread (docs/sizing.md says of which machine): for a row, and for each cache
#: line that it gathers from its partners.
_ROW, _LINE = 0.6e-6, 1.5e-8
#: A partner that is a list of clusters takes as long as so many lines.
_LINES_OF_LISTS = 4
#: Two workers of one thread took this many times the time of two threads of one process.
_DASK = 1.26
#: Bytes of a process that holds no data: the interpreter with its libraries.
_BASE = 600 << 20
#: A worker pauses at 80 % of its limit; what it needs must stay below.
_SHARE = 0.7
_GIB = 1 << 30
#: Bytes of pairs and masses for a worker with partitions, where their number is not given.
_WORKER = 16 * _GIB
#: Rows of a partition whose pairs are made at a time where they are not kept.
_RUN = 1 << 16
#: Bytes of the sample, the landmarks and the tasks, with room to spare.
_SAMPLE = 256 << 20


def seconds_per_row(k: int, f: int, lists: bool = False) -> float:
    """CPU seconds of one thread for one row of a full sweep: masses on f sets, or a list."""
    lines = _LINES_OF_LISTS if lists else padded_width(f) // padded_width(1)
    return _ROW + _LINE * k * lines


@dataclass(frozen=True)
class Plan:
    """Numbers of a job, and what follows from them. Made by :meth:`of`; sizes are in bytes."""

    objects: int
    features: int
    clusters: int
    pairs: int
    focal_sets: int
    workers: int
    threads: int
    network: float
    jobs: int = 1
    partitions: bool = False

    @classmethod
    def of(
        cls,
        objects: int,
        features: int,
        clusters: int,
        *,
        pairs: int = 100,
        focal_sets: str = "simple",
        workers: int | None = None,
        threads: int = 4,
        network: float = 10.0,
        jobs: int = 1,
        partitions: bool = False,
    ) -> Plan:
        """The plan for so many objects; numbers that make no sense are refused.

        Parameters
        ----------
        objects, features, clusters : int
            n, d and c.
        pairs : int
            k, the `n_dissimilarities` of EVCLUS.
        focal_sets : {"simple", "pairs", "full"}
        workers : int, optional
            By default so many that the kept pairs take as much room as the masses, which every
            worker holds; in partitions, so many that each has 16 GiB of pairs and masses.
        threads : int
            Of one worker.
        network : float
            Gigabits per second between workers.
        jobs : int
            Such jobs that run at the same time; more wait until one has ended.
        partitions : bool
            Whether the objects lie in partitions, which the workers share out among them.
        """
        given = {"objects": objects, "features": features, "clusters": clusters, "pairs": pairs,
                 "threads": threads, "jobs": jobs}  # fmt: skip
        if workers is not None:
            given["workers"] = workers
        for name, value in given.items():
            if not 1 <= value <= 10**12:
                raise ValueError(f"{name} must be at least 1 and below 1e12, got {value:,}.")
        if not 0 < network < math.inf:
            raise ValueError(f"network must be more than 0 Gbit/s, got {network:g}.")
        if focal_sets == "full" and clusters > 20:
            raise ValueError(f"2^{clusters} focal sets are too many: use 'simple' or 'pairs'.")
        counts = {"simple": clusters + 2, "full": 2 ** min(clusters, 20),
                  "pairs": clusters + 2 + clusters * (clusters - 1) // 2}  # fmt: skip
        if focal_sets not in counts:
            raise ValueError(f"focal_sets must be one of {', '.join(counts)}, got {focal_sets!r}.")
        k, f = min(pairs, max(objects - 1, 1)), counts[focal_sets]
        words = f if focal_sets != "simple" else row_words(clusters)
        need = projected(objects, k, words, near=near_share(k, clusters) > 0)
        if workers is None and partitions:
            workers = max(2, math.ceil((need.pairs + need.masses) / _WORKER))
        elif workers is None:
            workers = max(2, math.ceil(need.pairs / need.masses))
        return cls(objects, features, clusters, k, f, workers, threads, network, jobs, partitions)

    # ------------------------------------------------------------------ memory
    @property
    def lists(self) -> bool:
        """Whether rows are lists of clusters."""
        return self.clusters >= SPARSE_FROM and self.focal_sets == self.clusters + 2

    @property
    def words(self) -> int:
        """float32 numbers of a row."""
        return row_words(self.clusters) if self.lists else self.focal_sets

    @property
    def data(self) -> int:
        """The attributes as float32."""
        return 4 * self.objects * self.features

    @property
    def worker_need(self) -> int:
        """One worker: of each job all masses, its share of the pairs, and, while they are sampled,
        all data."""
        return _BASE + self.jobs * self.job_need

    @property
    def job_need(self) -> int:
        """What one job takes of a worker: jobs are let in by it (`evdist.engine.admission`)."""
        if self.partitions:
            own = math.ceil(self.objects / self.workers)
            kept = own * (8 * self.pairs + 40 + 4 * self.words + 8)
            return self._view + kept + 4 * self._outside * self.words
        near = near_share(self.pairs, self.clusters) > 0
        held = projected(self.objects, self.pairs, self.words, workers=self.workers, near=near)
        return held.total + self.data

    @property
    def worker_least(self) -> int:
        """One worker with partitions whose masses lie on its disk and whose pairs are not kept."""
        return _BASE + self._view + (_RUN + 8192) * 8 * self.pairs

    @property
    def _shuffle(self) -> Shuffle:
        return Shuffle.of(self.objects)

    @property
    def _view(self) -> int:
        """A partition and its partners: attributes, masses twice, and their table."""
        partners = 2 * len(odd_offsets(self._shuffle.count))
        masses = 8 * self.words + 4 * padded_width(self.words)
        row = masses + 4 * padded_width(self.features)
        return (1 + partners) * self._shuffle.rows * row

    @cached_property
    def _outside(self) -> int:
        """Rows of other workers that a worker needs the masses of."""
        P, offsets = self._shuffle.count, odd_offsets(self._shuffle.count)

        def neighbours(b: int) -> list[int]:
            return [(b + sign * o) % P for o in offsets for sign in (1, -1)]

        owned = shared_out(P, [1] * self.workers, neighbours, offsets[-1])
        return received(owned, neighbours) * self._shuffle.rows

    @property
    def run_need(self) -> int:
        """The flow run: the data, once more in the order of the pairs, and the masses.

        In partitions: a sample.
        """
        if self.partitions:
            return _BASE + _SAMPLE
        return _BASE + 3 * self.data + 3 * 4 * self.objects * self.words

    @property
    def scheduler_need(self) -> int:
        """The scheduler: what the flow run sends to the workers goes through it."""
        if self.partitions:
            return _BASE + self.jobs * _SAMPLE
        return _BASE + 2 * self.jobs * max(self.data, 4 * self.objects * self.words)

    @property
    def worker_limit(self) -> int:
        return _whole(self.worker_need / _SHARE)

    @property
    def run_limit(self) -> int:
        return _whole(self.run_need / _SHARE)

    @property
    def scheduler_limit(self) -> int:
        return _whole(self.scheduler_need / _SHARE)

    # ------------------------------------------------------------------ storage and time
    @property
    def storage(self) -> int:
        """Data, pairs, the masses and their checkpoints, uncompressed but for the partners.

        In partitions: the data, shuffled and on their way; masses in five places at most.
        """
        if self.partitions:
            return 3 * self.data + 5 * 4 * self.objects * self.words
        return self.data + stored(self.objects, self.pairs, self.words) * 5 // 4

    @property
    def compute_seconds(self) -> float:
        """Of one full sweep; rows that bring nothing rest in later ones."""
        row = seconds_per_row(self.pairs, self.words, self.lists)
        return _DASK * self.objects * row / (self.workers * self.threads)

    @property
    def moved(self) -> int:
        """Bytes that each worker receives in a full sweep: the changed masses."""
        if self.partitions:
            return self._outside * 4 * (self.words + 1)
        return 4 * self.objects * self.words

    @property
    def sweep_seconds(self) -> float:
        return self.compute_seconds + self.moved / (self.network * 1.25e8)

    # ------------------------------------------------------------------ values of the Helm chart
    def values(self) -> str:
        """A values file for the chart, to be put over one's own."""

        def amounts(cpu: int, memory: int) -> str:
            amount = f'{{cpu: "{cpu}", memory: {memory // _GIB}Gi}}'
            return f"{{requests: {amount}, limits: {amount}}}"

        scratch = max(20, math.ceil(0.2 * self.worker_limit / _GIB))
        together = amounts(2 * self.jobs, self.jobs * self.run_limit)
        pod = [
            f"    # With prefect.worker.type process all runs share a pod: resources: {together}"
        ]
        return "\n".join(
            [
                f"# evdist plan: {self.objects:,} objects, {self.features} attributes, "
                f"{self.clusters} clusters, {self.pairs} pairs each.",
                "# helm upgrade --install evdist helm/evdist --values mine.yaml --values this.yaml",
                "dask:",
                "  scheduler:",
                f"    resources: {amounts(2, self.scheduler_limit)}",
                "  workers:",
                f"    replicas: {self.workers}",
                f"    scratch: {scratch}Gi",
                f"    resources: {amounts(self.threads, self.worker_limit)}",
                "prefect:",
                "  worker:",
                f"    limit: {self.jobs}",
                "  runs:",
                f"    scratch: {scratch}Gi",
                *(pod if self.jobs > 1 else []),
                f"    resources: {amounts(2, self.run_limit)}",
                "storage:",
                "  pvc:",
                f"    size: {math.ceil(2 * self.storage / _GIB)}Gi",
                "",
            ]
        )


def _whole(size: float) -> int:
    """Up to whole gibibytes."""
    return math.ceil(size / _GIB) * _GIB
