"""What a credal partition says: views of each object, decisions, scores and tables.

The formulas stand in :mod:`evdist.partition.views`, one block of rows each; here they meet the
table of masses. References: Li, Li, Denoeux (2018), k-CEVCLUS, eqs. (3) and (23).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from evdist.belief import FocalSets, singleton_belief
from evdist.kernels.sparse_rows import decode
from evdist.partition import conformal, decisions, views
from evdist.partition.calibrate import Calibration, calibrate
from evdist.partition.explain import Explanation, explain
from evdist.partition.rows import gather_rows, map_rows
from evdist.partition.sparse import SparseMasses
from evdist.partition.sparse_views import BLOCK_WIDTH, LIST_VIEWS, has_list_views, joined
from evdist.partition.summary import ClusterSizes, Summary, add_tallies, tally
from evdist.partition.validate import check_lists, check_rows
from evdist.registry import load

if TYPE_CHECKING:
    import pandas as pd

    from evdist.partition.describe import Description


LabelRule = Literal["plausibility", "belief", "pignistic"]
ApproximationRule = Literal["mass", "dominance"]


class DerivedViews:
    """Everything that follows from ``mass`` and ``focal_sets``; computed on demand, never kept."""

    mass: Any
    focal_sets: FocalSets
    ids: NDArray[Any] | None

    @property
    def n_clusters(self) -> int:
        """Number of clusters, c."""
        return self.focal_sets.n_clusters

    @property
    def _lazy(self) -> bool:
        return not isinstance(self.mass, np.ndarray)

    @property
    def _has_lists(self) -> bool:
        """Whether the masses are lists of clusters that can be looked at as such."""
        return isinstance(self.mass, SparseMasses) and has_list_views(self.focal_sets)

    # ------------------------------------------------------------------ one number per cluster
    @property
    def plausibility(self) -> Any:
        """Contour pl_ik = Pl_i({k}), not normalised; (n, c), computed at each access."""
        return self._view(views.contour, self.n_clusters)

    @property
    def normalised_plausibility(self) -> Any:
        """pl_ik / (1 - m_i(empty)); (n, c). Where m_i(empty) = 1 nothing is known: 1 everywhere,
        or 1 / c when the whole frame is not a focal set (see :func:`evdist.belief.normalise`).
        """
        return self._view(views.normalised_contour, self.n_clusters)

    @property
    def belief(self) -> Any:
        """Bel_i({k}) = m_i({k}), not normalised; (n, c)."""
        return self._view(singleton_belief, self.n_clusters)

    @property
    def pignistic(self) -> Any:
        """BetP_i(k), each mass shared equally in its set; rows sum to 1 - m_i(empty), (n, c)."""
        return self._view(views.pignistic, self.n_clusters)

    @property
    def probability(self) -> Any:
        """BetP_i(k) / (1 - m_i(empty)): pignistic probabilities that sum to 1; (n, c).

        1 / c where m_i(empty) = 1. The ``predict_proba`` of an estimator, the ``probability_K``
        of tables.
        """
        return self._view(views.probability, self.n_clusters)

    def fuzzy(self) -> Any:
        """Fuzzy partition u_ik = pl_ik / sum_l pl_il; k-CEVCLUS, eq. (3), (n, c).

        Rows sum to one; a row with m_i(empty) = 1 is 1 / c.
        """
        return self._view(views.fuzzy, self.n_clusters)

    def possibilistic(self) -> Any:
        """Possibilistic partition, the contour pl_ik; (n, c).

        When the masses are consonant, ``from_possibilistic`` turns it back into them.
        """
        return self.plausibility

    # ------------------------------------------------------------------ decisions
    def labels(self, rule: LabelRule = "plausibility", *, outlier: int | None = None) -> Any:
        """Hard partition: the cluster of greatest plausibility, belief or pignistic probability.

        Ties go to the first cluster; an object with m_i(empty) = 1 is in cluster 0. With
        ``outlier=-1`` the objects of :meth:`outliers` get that label instead. (n,) int.

        Parameters
        ----------
        rule : {"plausibility", "belief", "pignistic"}, default="plausibility"
            What is greatest for the cluster that is taken.
        outlier : int, optional
            Label of outliers.
        """
        _one_of(rule, views.LABEL_RULES)
        if outlier is not None:
            outlier = operator.index(outlier)
            if 0 <= outlier < self.n_clusters:
                raise ValueError(
                    f"outlier must not be the number of a cluster, 0..{self.n_clusters - 1}, got "
                    f"{outlier}; -1 is usual."
                )
        return self._view(views.labels, None, np.int64, rule=rule, outlier=outlier)

    def lower(self, rule: ApproximationRule = "mass") -> Any:
        """Lower approximations: which objects surely belong to a cluster, A_i = {k}; (n, c) bool.

        ``rule="mass"``: A_i is the focal set with the largest mass, ties to the first.
        ``rule="dominance"``: A_i holds the clusters that no other dominates, Bel*_i({l}) <=
        Pl*_i({k}) for all l; an object with m_i(empty) = 1 has A_i = Omega.

        Parameters
        ----------
        rule : {"mass", "dominance"}, default="mass"
            What A_i is.
        """
        return self._approximations(rule, "lower", self.n_clusters)

    def upper(self, rule: ApproximationRule = "mass") -> Any:
        """Upper approximations: which objects possibly belong to a cluster, k in A_i; (n, c) bool.

        See :meth:`lower` for A_i.

        Parameters
        ----------
        rule : {"mass", "dominance"}, default="mass"
            What A_i is.
        """
        return self._approximations(rule, "upper", self.n_clusters)

    def rough(self, rule: ApproximationRule = "mass") -> tuple[Any, Any]:
        """Rough partition: the lower and the upper approximations, from one pass.

        Parameters
        ----------
        rule : {"mass", "dominance"}, default="mass"
            What A_i is, see `lower`.
        """
        both = self._approximations(rule, "both", 2 * self.n_clusters)
        return both[:, : self.n_clusters], both[:, self.n_clusters :]

    def assigned(self) -> Any:
        """Column of the focal set A_i with the largest mass, ties to the first; (n,) int."""
        return self._view(views.assigned_set, None, np.int64)

    def outliers(self) -> Any:
        """Objects whose largest mass is on the empty set, ties included; (n,) bool."""
        return self._view(views.outliers, None, bool)

    def decide(self, level: float | None = None) -> decisions.Decisions:
        """Whether each object is sure, between clusters or an outlier, and the open clusters.

        Cluster k stays open at the level when p_k / (p_1 + p_k) >= 1 - level, p the pignistic
        probabilities and 1 the best cluster; one open cluster: sure, several: between. Outliers
        are those of :meth:`outliers`. Level 1 says that no object is sure.

        Without ``level`` it is :meth:`level`, which depends on all objects of this partition: to
        judge some of them, or new ones, alike, hand on the ``level`` of the answer.

        Parameters
        ----------
        level : float, optional
            How sure an object must be, 0.5 to 1; by default that of `level()`.
        """
        q = self.level() if level is None else decisions.check_level(level)
        if self._has_lists:
            codes, still = joined(self._gather(decisions.decide, level=q), self.n_clusters)
            return decisions.Decisions(q, codes, still, self.margin())
        both = self._view(decisions.decide, 1 + self.n_clusters, np.uint8, level=q)
        return decisions.Decisions(q, both[:, 0], both[:, 1:].astype(bool), self.margin())

    def level(self) -> float:
        """The default level of :meth:`decide`, from one pass over the masses: 0.70 where few
        objects are undecided between clusters, more where many are, 1 where the clusters are not
        separated. With 3 to 24 clusters each pair has its own: what :meth:`decide` takes is then
        a number with an attribute `pairs`. See :func:`evdist.partition.decisions.local_level`.
        """
        c = self.n_clusters
        if self._local:
            blocks = self._gather(decisions.pair_counts, levels=())
            return decisions.PairCounts.of(blocks, c).level()
        blocks = self._gather(decisions.counts, levels=())
        judged, undecided = sum(blocks, np.zeros(2, dtype=np.int64))
        return decisions.auto_level(int(judged), int(undecided))

    @property
    def _local(self) -> bool:
        """Whether each pair of clusters has a level of its own."""
        return decisions.is_local(self.n_clusters)

    def margin(self) -> Any:
        """Plausibility margin (Pl_(1) - Pl_(2)) / max(1 - m(empty), 1/2), 0 to 1: the score that
        ranks objects by how likely their label is right; (n,).
        """
        return self._view(decisions.margin, None)

    def calibrate(
        self,
        labels: Any,
        risk: float = 0.02,
        *,
        confidence: float | None = None,
        random_state: int = 0,
    ) -> Calibration:
        """The lowest level at which at most ``risk`` of the sure objects are wrong.

        Half of the known objects, drawn at random, match the clusters to the classes (one to one,
        with the fewest errors) and choose the level; its risk is measured on the other half. A few
        labels tell little: ``bound`` of the answer says how large the risk may be all the same.

        Parameters
        ----------
        labels : mapping, (n,) array or CredalPartition
            Classes of some objects, {object: class} or with -1 for unknown ones; or another
            partition of the same objects, such as that of a Bootclus, whose normalised pignistic
            probabilities then stand for the classes. What is said of the risk holds where the known
            objects are a random sample of those to be judged.
        risk : float, default=0.02
            Share of the sure objects that may be wrong.
        confidence : float, optional
            Such as 0.95: the level is then one whose risk is at most ``risk`` with this
            confidence, and 1 (no object is sure) where the labels are too few to show it. To show 2
            % takes 149 sure objects without an error in the second half.
        random_state : int
            Of the halves.

        Returns
        -------
        Calibration
            Its ``level`` is for :meth:`decide`.
        """
        return calibrate(self, labels, risk, confidence, random_state)

    def conformal(
        self,
        alpha: float = 0.1,
        *,
        labels: Any = None,
        score: Literal["aps", "lac"] = "aps",
        random_state: int = 0,
    ) -> conformal.ConformalSets:
        """A set of clusters for each object that misses with probability at most ``alpha``.

        With ``labels``, the classes of a random sample of the objects as in :meth:`calibrate`, it
        misses the cluster that is matched to the class of one of the other objects. Half of the
        known objects match, the others calibrate; it holds for any masses. Without, it misses a
        cluster drawn from the object's own normalised pignistic probabilities: a statement about
        this table, not about new objects, for which
        :class:`evdist.conformal.ConformalClustering` makes one. ``promise`` of the answer says it.

        See :mod:`evdist.partition.conformal` for the proof.

        Parameters
        ----------
        alpha : float, default=0.1
            How often a set may miss.
        labels : mapping or (n,) array, optional
            Classes of some objects, {object: class} or with -1 for unknown ones.
        score : {"aps", "lac"}, default="aps"
            "aps" fills each set from the best cluster on; "lac" takes all clusters above one
            probability: smaller sets, some of them empty.
        random_state : int, default=0
            Draws the halves, and without labels the 50,000 objects that calibrate where there are
            more.

        Returns
        -------
        ConformalSets
            With its `promise` in words.
        """
        return conformal.of_partition(self, alpha, labels, score, random_state)

    def explain(
        self, i: int, X: Any = None, *, level: float | decisions.Decisions | None = None
    ) -> Explanation:
        """Why object ``i`` is sure, between or an outlier; ``print`` it.

        With the attributes ``X`` (n, d) also which of them make it strange among the sure members
        of its nearest cluster, and the sure members that are nearest to it. See
        :class:`evdist.partition.explain.Explanation`. To explain many objects, give the answer of
        :meth:`decide` instead of its level: it is then not found again for each of them.

        Parameters
        ----------
        i : int
            Row of the object.
        X : (n, d) array or data frame, optional
            The attributes.
        level : float or Decisions, optional
            As in `decide`, or what that answered.
        """
        return explain(self, i, X, level)

    def describe(
        self, X: Any = None, *, text: Any = None, level: float | decisions.Decisions | None = None
    ) -> Description:
        """What each cluster is, in words and in the units of the table; ``print`` it.

        A card for each cluster: how many objects surely and possibly belong to it, a headline, the
        attributes that tell it best from the rest (mean and spread against the others, or the most
        telling levels), typical members, members on its border, and the clusters that objects lie
        between it and. See :class:`evdist.partition.describe.Description`.

        Parameters
        ----------
        X : (n, d) data frame, polars frame, Arrow table or array, optional
            The table of the objects as it was before any scaling or encoding. It need not be what
            was clustered: any attributes will do.
        text : str or (n,) sequence of str, optional
            A column of X that holds texts, or the texts: a cluster is then named by the words that
            tell its texts from the others' (class-based TF-IDF).
        level : float or Decisions, optional
            Of what is sure; see :meth:`decide`.
        """
        found: Description = load("evdist.partition.describe:describe")(
            self, X, text=text, level=level
        )
        return found

    # ------------------------------------------------------------------ scores and tables
    def nonspecificity(self) -> float:
        """N*, from 0 (precise) to 1 (vacuous); k-CEVCLUS, eq. (23). 0 for no objects."""
        return self.summary().nonspecificity

    def object_nonspecificity(self) -> Any:
        """Nonspecificity of each object from 0 to 1, the summand of N*; (n,)."""
        return self._view(views.specificity_loss, None)

    def sizes(self, rule: ApproximationRule = "mass") -> ClusterSizes:
        """Sizes of the clusters: sum of pignistic probabilities, and objects by label, lower and
        upper approximation.

        Parameters
        ----------
        rule : {"mass", "dominance"}, default="mass"
            Of the approximations, see `lower`.
        """
        return self.summary(rule).sizes

    def summary(self, rule: ApproximationRule = "mass", *, level: float | None = None) -> Summary:
        """Counts, N* and a table of the clusters, from one pass over the masses.

        ``rule`` is that of the approximations in the table; sure objects and objects between
        clusters are counted by :meth:`decide` at ``level``.

        Parameters
        ----------
        rule : {"mass", "dominance"}, default="mass"
            Of the approximations, see `lower`.
        level : float, optional
            As in `decide`.
        """
        _one_of(rule, views.APPROXIMATION_RULES)
        levels = decisions.LEVELS if level is None else (decisions.check_level(level),)
        tallies = self._gather(tally, rule=rule, levels=levels)
        return add_tallies(tallies, self.focal_sets, levels)

    def to_frame(self, *, masses: bool = False, level: float | None = None) -> pd.DataFrame:
        """One row per object, indexed by the ids: ``label``, ``decision``, ``open``, ``set``,
        ``probability``, ``margin``, ``nonspecificity``, ``empty``, then ``probability_K`` and
        ``plausibility_K`` of each cluster K; with ``masses`` also ``mass_SET`` of each focal set.

        The columns are those of :meth:`CredalPartition.save` to CSV and Parquet and of a job's
        ``objects.parquet``; :mod:`evdist.partition.export` says what each holds. ``level`` is that
        of :meth:`decide`. Held in memory: ``table.join(partition.to_frame())``.

        Parameters
        ----------
        masses : bool, default=False
            Add a column for each focal set.
        level : float, optional
            As in `decide`.
        """
        return load("evdist.partition.export:frame")(self._answer(level), masses)

    def _answer(self, level: float | None = None) -> Any:
        """What the exports need; the level is chosen where it is not given."""
        q = self.level() if level is None else decisions.check_level(level)
        return load("evdist.partition.export:Answer")(self.mass, self.focal_sets, self.ids, q)

    # ------------------------------------------------------------------ blocks
    def _view(
        self, view: Callable[..., Any], width: int | None, dtype: DTypeLike = float, **options: Any
    ) -> Any:
        """One result of the view per row."""
        table, block, whole = self._look(view, options)
        return map_rows(block, table, width=width, dtype=dtype, block_width=whole)

    def _gather(self, view: Callable[..., Any], **options: Any) -> list[Any]:
        """The view of each block; blocks of lists have the rows that blocks of masses have."""
        table, block, _ = self._look(view, options)
        return gather_rows(block, table, block_width=self.mass.shape[1])

    def _look(
        self, view: Callable[..., Any], options: dict[str, Any]
    ) -> tuple[Any, Callable[[NDArray[Any], int], Any], int]:
        """A table, the view as a function of (block of it, first row), columns of what that needs.

        Lazy masses are checked as they come. Lists are looked at as such where the view has a list
        version, and made dense else.
        """
        known: dict[str, Any] = {"focal": self.focal_sets, "options": options}
        if not isinstance(self.mass, SparseMasses):
            block = partial(_on_block, view=view, check=self._lazy, **known)
            return self.mass, block, self.mass.shape[1]
        if view in LIST_VIEWS and self._has_lists:
            block = partial(
                _on_lists, view=LIST_VIEWS[view], dense=False, check=self._lazy, **known
            )
            return self.mass.rows, block, BLOCK_WIDTH
        block = partial(_on_lists, view=view, dense=True, check=self._lazy, **known)
        return self.mass.rows, block, self.mass.shape[1]

    def _approximations(self, rule: str, which: str, width: int) -> Any:
        _one_of(rule, views.APPROXIMATION_RULES)
        return self._view(views.approximations, width, bool, rule=rule, which=which)


def _on_block(
    block: NDArray[Any],
    first: int,
    view: Callable[..., Any],
    focal: FocalSets,
    check: bool,
    options: dict[str, Any],
) -> Any:
    if check:
        check_rows(block, first, focal.names)
    return view(np.ascontiguousarray(block, dtype=np.float64), focal, **options)


def _on_lists(
    T: NDArray[np.float32],
    first: int,
    view: Callable[..., Any],
    dense: bool,
    focal: FocalSets,
    check: bool,
    options: dict[str, Any],
) -> Any:
    if check:
        check_lists(T, first, focal.names)
    return view(decode(T, focal.n_clusters).astype(np.float64) if dense else T, focal, **options)


def _one_of(rule: str, rules: tuple[str, ...]) -> None:
    if rule not in rules:
        names = ", ".join(repr(name) for name in rules)
        raise ValueError(f"rule must be one of {names}, got {rule!r}.")
