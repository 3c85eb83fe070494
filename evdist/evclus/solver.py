"""EVCLUS, k-EVCLUS and k-CEVCLUS from end to end: start, sample, sweep.

Reference: Li, Li, Denoeux (2018), k-CEVCLUS, algorithm 1; Denoeux (2021), NN-EVCLUS, section 2.3.

Where the work runs is a `Site`: the threads or the device of this process, or the workers of a
cluster. The stages are the same; on threads and on any number of workers so are the bits.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets, contour, mutual_neighbour_pairs
from evdist.constraints import check_links, expand_constraints
from evdist.data.sources import PairList, Source
from evdist.engine.loop import Descent, Solution, minimise
from evdist.engine.plan import whole_cycles
from evdist.engine.progress import Progress, Report
from evdist.evclus.begin import begin
from evdist.evclus.confirm import Members
from evdist.evclus.d0 import given_d0
from evdist.evclus.groups import Groups
from evdist.evclus.irqp import Stop, Sweeps
from evdist.evclus.kept import SomePairs, some_pairs
from evdist.evclus.landmarks import Landmarks
from evdist.evclus.late import late_rows
from evdist.evclus.link_table import link_table
from evdist.evclus.problem import Pairs, Plan, Problem
from evdist.evclus.reach import tell_outliers
from evdist.evclus.rows.protocol import Masses
from evdist.evclus.sampling import Layout, colour_pair_list
from evdist.evclus.sites import Site
from evdist.evclus.start import Settings, given_or_random
from evdist.kernels.sparse_rows import SLOTS, full_rows
from evdist.partition import CredalPartition, views
from evdist.partition.sparse import SparseMasses
from evdist.stores.fingerprints import fingerprint

__all__ = [
    "Constraints",
    "Fit",
    "Settings",
    "Solver",
    "first_focal_sets",
    "fit_evclus",
    "gives_back",
    "tell_full_rows",
    "total_square",
    "total_weight",
    "widen",
]

#: Weights of the constraints in the warm-up, k-CEVCLUS section 3.1 (which has the first).
WARM_UP = (0.05, 0.15)
#: More rows than this share of them naming as many clusters as they can are told.
FULL_SHARE = 0.001


@dataclass(frozen=True)
class Constraints:
    """Must-link and cannot-link pairs of objects, (p, 2) each, already checked."""

    must: NDArray[np.int64]
    cannot: NDArray[np.int64]

    @classmethod
    def of(
        cls, X: Any, data: Source | PairList, must_link: Any, cannot_link: Any, expand: int,
        metric: Any,
    ) -> Constraints:  # fmt: skip
        """Links as a user gives them, each expanded to `expand` pairs of neighbours in X."""
        must, cannot = check_links(must_link, cannot_link, data.n)
        # A list of pairs takes no constraints, which the fit says.
        if expand and len(must) + len(cannot) and not isinstance(data, PairList):
            # Guessed links may contradict each other in a roundabout way; the given ones may not.
            must, cannot = expand_constraints(
                X, must, cannot, expand, metric=metric, consistent=False
            )
        return cls(must, cannot)

    def __bool__(self) -> bool:
        return len(self.must) + len(self.cannot) > 0


@dataclass(frozen=True)
class Fit:
    """What a fit leaves: masses by object, and what prediction needs."""

    mass: NDArray[np.float32] | SparseMasses
    focal_sets: FocalSets
    solution: Solution
    d0: float
    d0_curve: list[tuple[float, float]]
    landmarks: Landmarks | None
    order: NDArray[np.uint32]
    pairs: Pairs
    #: Some pairs with their conflicts, where masses were changed after the last sweep.
    kept: SomePairs | None = None


def fit_evclus(
    data: Source | PairList,
    settings: Settings,
    *,
    constraints: Constraints,
    weight: NDArray | None = None,
    site: Site,
    report: Report = None,
    known: Groups | None = None,
) -> Fit:
    """Fit EVCLUS; with `constraints`, k-CEVCLUS. `known` are groups as `begin` takes them."""
    rows = site.backend
    if report is not None and rows.news is not None:
        report(Progress(rows.news, 0, 0))
    first = first_focal_sets(settings.focal_sets, settings.n_clusters)
    pairs: Pairs
    layout: Layout | None = None
    landmarks: Landmarks | None = None
    groups: NDArray[np.integer] | None = None
    sparse = False
    curve: list[tuple[float, float]] = []
    if isinstance(data, PairList):
        if constraints:
            raise ValueError(
                "Constraints need dissimilarities that can be computed for any pair; a list of "
                "pairs has its own graph. Pass the attributes or a square matrix."
            )
        d0 = given_d0(settings.d0, data.D)
        pairs, plan, order = colour_pair_list(data, d0, settings.seed)
        starts = given_or_random(data.n, first, settings)
    else:
        tell = report or (lambda news: None)
        found = begin(
            data, first, settings, site.starter, site.n_threads, tell,
            linked=bool(constraints), known=known,
        )  # fmt: skip
        d0, curve, starts, landmarks = found.d0, found.d0_curve, found.starts, found.landmarks
        layout, sparse, groups = found.layout, found.sparse, found.groups
        tell(Progress("draw pairs", 0, 0))
        order = layout.order
        pairs = site.sample(data, layout, d0, settings.seed)
        plan = Plan.of(layout.bounds)
    problem = Problem(
        first, pairs, plan, _in_positions(weight, order),
        sparse=sparse, promise=settings.stop.promise,
    )  # fmt: skip
    scale = 1.0 / total_weight(problem, site)
    solve = Solver(site, scale, settings.stop, _identity(data, d0, settings, site), report)
    tries = [
        solve(problem, rows.in_positions(m, order), "fit" if i == 0 else f"fit {i + 1}")
        for i, m in enumerate(starts)
    ]
    solution = min(tries, key=lambda s: s.objective)
    focal_sets = first
    if settings.focal_sets == "select":
        mass = rows.on_host(solution.value)
        focal_sets = _with_neighbour_pairs(mass, first, settings.pair_neighbours)
        problem = replace(problem, focal_sets=focal_sets)
        solution = solve(problem, widen(mass, first, focal_sets), "pairs")
    if constraints and layout is not None:
        solution = _constrained(solve, problem, solution, constraints, layout, settings)
    mass = rows.by_object(solution.value, order)
    kept: SomePairs | None = None
    if groups is not None and landmarks is not None and not constraints:
        # Not with links: one may hold an object in a cluster that is far from it.
        assert not isinstance(data, PairList)
        some, distances = landmarks.objects, data.distances
        members = Members.of(mass[some], groups[some], focal_sets, sparse)
        members.confirm(mass, groups, d0, lambda rows, others: distances(rows, some[others]))
    if landmarks is not None:
        landmarks = replace(landmarks, mass=mass[landmarks.objects], focal_sets=focal_sets)
        if layout is not None and layout.graph.near:
            landmarks = landmarks.with_members()
        if gives_back(settings, sparse or groups is not None):
            assert not isinstance(data, PairList)
            landmarks = landmarks.with_reach(data.n)
            kept = some_pairs(pairs, order).with_conflicts(CredalPartition(mass, focal_sets))
            landmarks.give_back(mass, data)
        elif settings.d0 != "auto" and not sparse:
            assert not isinstance(data, PairList)
            tell_outliers(views.outliers(mass, focal_sets), data, settings.n_clusters, d0)
    found_mass = SparseMasses(mass, settings.n_clusters) if sparse else mass
    if isinstance(found_mass, SparseMasses):
        tell_full_rows(full_rows(found_mass.rows), len(found_mass))
    return Fit(found_mass, focal_sets, solution, d0, curve, landmarks, order, pairs, kept)


def gives_back(settings: Settings, groups: bool) -> bool:
    """Whether mass on the empty set is held against neighbours: see `evdist.evclus.reach`.

    With a d0 of the user's a fit is that of the papers; one that began with `groups` has a d0 that
    calls hardly an object an outlier.
    """
    return settings.d0 == "auto" and not groups


def tell_full_rows(full: int, n: int) -> None:
    """A list that is full may have wanted more: that must not go unseen."""
    if full > FULL_SHARE * n:
        warnings.warn(
            f"{full:,} of {n:,} objects have mass on {SLOTS} clusters, the maximum for a "
            "row; mass on further clusters was added to their largest. Clusters are not separated "
            "at this d0: try a larger d0, or fewer clusters.",
            stacklevel=4,
        )


def _identity(data: Source | PairList, d0: float, settings: Settings, site: Site) -> dict[str, Any]:
    """What a checkpoint of this fit must agree with; a fit without a folder leaves none."""
    if site.folder is None:
        return {}
    init = settings.init
    return {
        "data": data.fingerprint(),
        "k": settings.k,
        "seed": settings.seed,
        "d0": d0,
        "init": init if isinstance(init, str) else _fingerprint(init),
        "n_init": settings.n_init,
    }


def _fingerprint(init: NDArray | SparseMasses) -> str:
    return fingerprint(init.rows if isinstance(init, SparseMasses) else init)


@dataclass(frozen=True)
class Solver:
    """Sweeps of a problem from given masses (in positions), on a site, with checkpoints."""

    site: Site
    scale: float
    stop: Stop
    identity: dict[str, Any]
    report: Report

    def __call__(self, problem: Problem, mass: Masses, stage: str = "fit") -> Solution[Masses]:
        begin: Descent[None] | None = None
        save = None
        keep = self.site.checkpoint(stage)
        if keep is not None:
            parts = {**self.identity, **_identity_of_problem(problem)}
            found = keep.load(parts)
            if found is not None:
                mass, known = found
                begin = Descent(None, tuple(known["history"]), known["error"])
        executor = self.site.executor(problem, mass)
        if keep is not None:
            every, first = whole_cycles(self.site.checkpoint_every), begin

            def save(now: Descent[None], last: bool) -> None:
                # A fit that stopped at max_iter may go on later: from a whole cycle, with the
                # same bits.
                done = last and now.error < self.stop.tol
                due = done or now.steps % every == 0
                if due and (first is None or now.steps > first.steps):
                    state = {"sweep": now.steps, "error": now.error, "history": [*now.history]}
                    keep.save(executor.masses(), state, parts)

        sweeps = Sweeps(executor, self.scale, self.stop)
        try:
            descent = minimise(
                sweeps, self.stop.max_iter,
                stage=stage, report=self.report, begin=begin, checkpoint=save,
            )  # fmt: skip
            return sweeps.with_masses(descent)
        finally:
            executor.close()


def _identity_of_problem(problem: Problem) -> dict[str, Any]:
    """What a checkpoint of this problem must agree with, beside the data."""
    links = problem.links
    return {
        "n": problem.n,
        "focal sets": fingerprint(list(problem.focal_sets.masks), problem.focal_sets.n_clusters),
        "weights": fingerprint(problem.weight),
        **({"rows": "sparse"} if problem.sparse else {}),
        "links": "none" if links is None else fingerprint(*links[:3], links.penalty),
    }


def _constrained(
    solve: Solver,
    problem: Problem,
    solution: Solution,
    constraints: Constraints,
    layout: Layout,
    settings: Settings,
) -> Solution:
    """xi = 0 was solved; now it grows to the weight asked for (k-CEVCLUS, section 3.1).

    Differs: eq. (11) prints the factor xi / (2 |links|). The printed tables, and R's criterion,
    belong to four times that, 2 xi / |links|, which is what we take: xi then means what it means
    in the paper's experiments. One more step of warm-up finds lower minima when links are few.
    """
    position = np.empty(problem.n, np.int64)
    position[layout.order] = np.arange(problem.n)
    must, cannot = constraints.must, constraints.cannot
    late = late_rows(must, cannot, position, layout.bounds, layout.graph.partners_of)
    plan = Plan.of(layout.bounds, late)
    # Eq. (11) divides the stress by the sum of delta^2; we keep the stress and multiply instead.
    unit = 2 * total_square(problem, solve.site) / (len(must) + len(cannot))
    final = settings.constraint_weight
    for xi in (*(w for w in WARM_UP if w < final), final):
        links = link_table(must, cannot, position, problem.focal_sets, xi * unit)
        stage = f"constraints {xi:g}"
        solution = solve(replace(problem, plan=plan, links=links), solution.value, stage)
    return solution


def total_weight(problem: Problem, site: Site) -> float:
    """Sum over kept pairs of their weights."""
    if not problem.weight.size:
        return problem.pairs.entries / 2
    return site.sum_over_pieces(_weights_of_rows, problem) / 2


def total_square(problem: Problem, site: Site) -> float:
    """Sum over kept pairs of weight times delta^2."""
    return site.sum_over_pieces(_squares_of_rows, problem) / 2


def _weights_of_rows(problem: Problem, lo: int, hi: int) -> float:
    return float(_pair_weights(problem, lo, hi)[0].sum())


def _squares_of_rows(problem: Problem, lo: int, hi: int) -> float:
    weight, delta = _pair_weights(problem, lo, hi)
    return float((weight * delta * delta).sum())


def _pair_weights(problem: Problem, lo: int, hi: int) -> tuple[NDArray, NDArray]:
    """w_i w_j and delta of every kept pair of rows lo..hi-1, in float64."""
    block = problem.pairs.block(lo, hi)
    rows = np.repeat(np.arange(hi - lo), block.degree)
    before = np.cumsum(block.degree) - block.degree
    used = np.arange(len(rows)) + np.repeat(block.first - before, block.degree)
    weight = np.ones(len(used))
    if problem.weight.size:
        w = problem.weight.astype(float)
        weight = w[lo + rows] * w[block.partner[used]]
    return weight, block.delta[used].astype(float)


def _in_positions(weight: NDArray | None, order: NDArray) -> NDArray[np.float32]:
    if weight is None:
        return np.zeros(0, np.float32)
    return np.ascontiguousarray(weight[order], dtype=np.float32)


# ---------------------------------------------------------------------- focal sets
def first_focal_sets(family: FocalSets | str, n_clusters: int) -> FocalSets:
    """The family of the first (or only) fit: "select" begins with singletons."""
    if isinstance(family, FocalSets):
        return family
    return getattr(FocalSets, "simple" if family == "select" else family)(n_clusters)


def _with_neighbour_pairs(mass: NDArray, focal_sets: FocalSets, q: int) -> FocalSets:
    """Slides, "Carefully selecting the focal sets", step 2."""
    pl = contour(mass.astype(float), focal_sets)
    alive = 1.0 - mass[:, :1].astype(float)
    normalised = np.divide(pl, alive, out=np.zeros_like(pl), where=alive > 0)
    return FocalSets.pairs(focal_sets.n_clusters, mutual_neighbour_pairs(normalised, q))


def widen(mass: NDArray, small: FocalSets, large: FocalSets) -> NDArray[np.float32]:
    """The same masses on a larger family, or on the same one in another order."""
    wide = np.zeros((len(mass), len(large)), np.float32)
    wide[:, [large.index(s) for s in small]] = mass
    return wide
