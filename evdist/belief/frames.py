"""Change of frame: refinement and coarsening, products of frames, extension and marginals.

Symbols
-------
c        clusters of the coarse frame
d        clusters of the fine frame
groups   c disjoint sets of fine clusters that together make the fine frame: what each coarse
         cluster is made of

References: Shafer (1976) for refinings and the inner and outer reduction; Shenoy and
Shafer (1990), Axioms for probability and belief-function propagation, for products of frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from operator import or_
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import as_masses
from evdist.belief.families import carry, family_of
from evdist.belief.focal import FocalSets


def refine(
    m: ArrayLike, focal: FocalSets, groups: Sequence[Iterable[int]]
) -> tuple[NDArray[np.floating], FocalSets]:
    """The same evidence on a finer frame: each mass goes to what its set is made of.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    groups : sequence of c iterables of int
        The fine clusters of each coarse one: disjoint, and together 0..d-1.

    Returns
    -------
    mass : (n, f) or (f,) array
        Masses on the sets of the result.
    focal : FocalSets
        Over d clusters, by size.

    Examples
    --------
    >>> from evdist.belief import FocalSets, refine
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, family = refine([0, .7, 0, .3], focal, [[0, 1], [2]])
    >>> {name: mass for name, mass in zip(family.names, m.round(2).tolist()) if mass}
    {'{0,1}': 0.7, 'Ω': 0.3}
    """
    M = as_masses(m, focal)
    blocks, d = _blocks(groups)
    if len(blocks) != focal.n_clusters:
        raise ValueError(
            f"groups must be {focal.n_clusters} sets of fine clusters, one per cluster, got "
            f"{len(blocks)}."
        )
    fine = [reduce(or_, (blocks[k] for k in members), 0) for members in focal.sets]
    family = family_of(fine, d)
    return carry(M, fine, family), family


def coarsen(
    m: ArrayLike,
    focal: FocalSets,
    groups: Sequence[Iterable[int]],
    *,
    reduction: Literal["outer", "inner"] = "outer",
) -> tuple[NDArray[np.floating], FocalSets]:
    """What masses on a fine frame say of a coarser one, such as of clusters that were merged.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    groups : sequence of c iterables of int
        The fine clusters of each coarse one: disjoint, and together all clusters.
    reduction : {"outer", "inner"}
        ``"outer"`` sends a set to the coarse clusters that it meets, and keeps the beliefs and
        plausibilities of sets that are unions of groups; ``"inner"`` to those that it holds
        whole, possibly none: then m(empty) tells what the coarse frame cannot say.

    Returns
    -------
    mass : (n, f') or (f',) array
        Masses on the sets of the result.
    focal : FocalSets
        Over c clusters, by size.

    Examples
    --------
    >>> from evdist.belief import FocalSets, coarsen
    >>> focal = FocalSets.simple(3)  # ∅, {0}, {1}, {2}, Ω
    >>> m, family = coarsen([0, .5, .2, .1, .2], focal, [[0, 1], [2]])
    >>> family.names
    ('∅', '{0}', '{1}', 'Ω')
    >>> m.round(2)
    array([0. , 0.7, 0.1, 0.2])
    """
    M = as_masses(m, focal)
    blocks, d = _blocks(groups)
    if d != focal.n_clusters:
        raise ValueError(f"groups must hold clusters 0..{focal.n_clusters - 1}, got 0..{d - 1}.")
    if reduction not in ("outer", "inner"):
        raise ValueError(f'reduction must be "outer" or "inner", got {reduction!r}.')
    if reduction == "outer":
        kept = [[mask & block != 0 for block in blocks] for mask in focal.masks]
    else:
        kept = [[mask & block == block for block in blocks] for mask in focal.masks]
    coarse = [sum(1 << k for k, yes in enumerate(row) if yes) for row in kept]
    family = family_of(coarse, len(blocks))
    return carry(M, coarse, family), family


@dataclass(frozen=True)
class ProductFrame:
    """The frame of several questions at once: one cluster for every combination of answers.

    Parameters
    ----------
    sizes : tuple of int
        Number of answers of each variable. Combinations are numbered like the elements of an
        array of that shape, the last variable fastest.

    Examples
    --------
    >>> from evdist.belief import ProductFrame
    >>> frame = ProductFrame((2, 3))
    >>> frame.number((1, 0))
    3
    >>> frame.answers(5)
    (1, 2)
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise ValueError(f"Every variable needs at least one answer, got sizes {self.sizes}.")

    @cached_property
    def n_clusters(self) -> int:
        """Number of combinations."""
        return int(np.prod(self.sizes))

    def number(self, answers: Sequence[int]) -> int:
        """The cluster that stands for these answers.

        Parameters
        ----------
        answers : sequence of int
            One per variable.
        """
        if len(answers) != len(self.sizes) or not all(
            0 <= a < size for a, size in zip(answers, self.sizes, strict=True)
        ):
            raise ValueError(
                f"Answers must be {len(self.sizes)} numbers, from 0 and below {self.sizes}, got "
                f"{tuple(answers)}."
            )
        return int(np.ravel_multi_index(tuple(answers), self.sizes))

    def answers(self, number: int) -> tuple[int, ...]:
        """The answers that a cluster stands for.

        Parameters
        ----------
        number : int
            The cluster.
        """
        return tuple(int(a) for a in np.unravel_index(number, self.sizes))

    def cylinders(self, variables: Sequence[int]) -> list[list[int]]:
        """For each combination of answers of some variables, all clusters that agree with it.

        Parameters
        ----------
        variables : sequence of int
            Numbers of the variables.
        """
        own = list(variables)
        if len(set(own)) != len(own) or not all(0 <= v < len(self.sizes) for v in own):
            raise ValueError(
                f"Variables must be different numbers in 0..{len(self.sizes) - 1}, got {own}."
            )
        part: dict[tuple[int, ...], list[int]] = {
            key: [] for key in product(*(range(self.sizes[v]) for v in own))
        }
        for number, answers in enumerate(product(*(range(size) for size in self.sizes))):
            part[tuple(answers[v] for v in own)].append(number)
        return list(part.values())


def vacuous_extension(
    m: ArrayLike, focal: FocalSets, frame: ProductFrame, variables: Sequence[int]
) -> tuple[NDArray[np.floating], FocalSets]:
    """Masses about some variables as masses about all, of which they say nothing more.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        Over the combinations of answers of ``variables``, in that order, the last one fastest.
    frame : ProductFrame
        All variables.
    variables : sequence of int
        Numbers of the variables that ``m`` is about.

    Returns
    -------
    mass : (n, f) or (f,) array
        Masses on the sets of the result.
    focal : FocalSets
        Over ``frame.n_clusters`` clusters, by size.

    Examples
    --------
    >>> from evdist.belief import FocalSets, ProductFrame, vacuous_extension
    >>> frame = ProductFrame((2, 3))  # two variables, of two and of three answers
    >>> m, family = vacuous_extension([0, .7, 0, .3], FocalSets.full(2), frame, [0])
    >>> {name: mass for name, mass in zip(family.names, m.round(2).tolist()) if mass}
    {'{0,1,2}': 0.7, 'Ω': 0.3}
    """
    return refine(m, focal, frame.cylinders(variables))


def marginalise(
    m: ArrayLike, focal: FocalSets, frame: ProductFrame, variables: Sequence[int]
) -> tuple[NDArray[np.floating], FocalSets]:
    """What masses on a product frame say of some of its variables: focal sets are projected.

    Parameters as in :func:`vacuous_extension`, which it undoes; ``focal`` is over
    ``frame.n_clusters`` clusters, the family returned over the combinations of ``variables``.

    Parameters
    ----------
    m : (n, f) or (f,) array
        Masses.
    focal : FocalSets
        The sets that the columns are for.
    frame : ProductFrame
        The variables and their values.
    variables : iterable of int
        The variables that are kept.

    Examples
    --------
    >>> from evdist.belief import FocalSets, ProductFrame, marginalise
    >>> frame = ProductFrame((2, 2))  # clusters 0..3: (0,0), (0,1), (1,0), (1,1)
    >>> focal = FocalSets.of([[0], [0, 3]], 4)
    >>> m, family = marginalise([0, .7, .3], focal, frame, [0])
    >>> {name: mass for name, mass in zip(family.names, m.round(2).tolist()) if mass}
    {'{0}': 0.7, 'Ω': 0.3}
    """
    return coarsen(m, focal, frame.cylinders(variables))


def _blocks(groups: Sequence[Iterable[int]]) -> tuple[list[int], int]:
    """Groups as bit masks, and the number of fine clusters."""
    members = [[int(k) for k in group] for group in groups]
    everyone = sorted(k for group in members for k in group)
    if not all(members) or everyone != list(range(len(everyone))):
        raise ValueError(
            "groups must be non-empty, disjoint and together hold all clusters from 0, got "
            f"{members}."
        )
    return [sum(1 << k for k in group) for group in members], len(everyone)
