"""Rules that combine the answers of several partitions about one pair, on Theta = {s, not s}.

With only four sets, N sources are combined at once and in closed form. For source r let e, s, n, t
be the masses of the empty set, {s}, {not s} and Theta, and P(x) the product of x over the sources.

    all sets meet in {s}      P(s + t) - P(t)
    all sets meet in {not s}  P(n + t) - P(t)
    all sets are Theta        P(t)
    all sets are empty        P(e)
    everything else           conflict between the sources
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Rule = Literal["dempster", "dubois_prade", "average", "dubois-prade"]
"""Names of the rules, see `combine_relations`.

"dubois-prade" is the name of "dubois_prade" in earlier versions; stored jobs have it.
"""

#: What two sources leave to each other below this is rounding of masses, not evidence.
TOTAL_CONFLICT = 1e-13


def combine_relations(masses: NDArray[Any], rule: Rule = "dempster") -> NDArray[Any]:
    """Combine the pairwise mass functions of N partitions, pair by pair.

    Parameters
    ----------
    masses : (N, ..., 4)
        Masses of the empty set, {s}, {not s} and Theta, by source.
    rule : {"dempster", "dubois_prade", "average"}
        "dempster" divides by one minus the conflict; "dubois_prade" gives the mass of sets with
        an empty intersection to their union; "average" takes the mean.

    Returns
    -------
    (..., 4) float64
        The combined masses of each pair.

    Notes
    -----
    Differs from Dempster's rule on the closed frame in two cases that it leaves open. Sources
    that ALL give mass to the empty set (one of the objects belongs to no cluster) agree, so that
    this part is kept: it is Dempster's rule with "neither" as a third answer. Where the conflict is
    total the sources say nothing together: the result is vacuous, as it is with Dubois-Prade.

    Examples
    --------
    >>> import numpy as np
    >>> from evdist.combine import combine_relations
    >>> masses = np.array([[0, .8, 0, .2], [0, .5, 0, .5]])  # both say: together
    >>> combine_relations(masses).round(2)
    array([0. , 0.9, 0. , 0.1])
    """
    masses = np.asarray(masses, dtype=float)
    if masses.ndim < 2 or masses.shape[-1] != 4 or not len(masses):
        raise ValueError(f"masses must have shape (N, ..., 4) with N >= 1, got {masses.shape}.")
    if rule == "average":
        return masses.mean(axis=0)
    if rule not in get_args(Rule):
        raise ValueError(f"rule must be one of {', '.join(get_args(Rule)[:3])}, got {rule!r}.")
    return _dempster(masses) if rule == "dempster" else _dubois_prade(masses)


def _dempster(masses: NDArray[Any]) -> NDArray[Any]:
    out = _commonality(masses[0])
    contradiction = np.zeros(out.shape[:-1], dtype=bool)
    for source in masses[1:]:
        out = out * _commonality(source)
        # The scale is free until the end; kept at one, many sources do not underflow.
        scale = out.max(axis=-1, keepdims=True)
        contradiction |= scale[..., 0] < TOTAL_CONFLICT
        out /= np.where(scale > 0.0, scale, 1.0)
    out[..., 1:3] -= out[..., 3:]
    out[contradiction] = (0.0, 0.0, 0.0, 1.0)
    return out / out.sum(axis=-1, keepdims=True)


def _commonality(m: NDArray[Any]) -> NDArray[Any]:
    """e, s + t, n + t, t: what is multiplied when sets are intersected."""
    return m + m[..., 3:] * np.array([0.0, 1.0, 1.0, 0.0])


def _dubois_prade(masses: NDArray[Any]) -> NDArray[Any]:
    e, s, n, t = np.moveaxis(masses, -1, 0)
    empty, theta = e.prod(axis=0), t.prod(axis=0)
    # Sets that meet in {s}, and empty sets beside {s}, whose union is {s}; not-s likewise.
    same = (s + t).prod(axis=0) - theta + (e + s).prod(axis=0) - empty - s.prod(axis=0)
    apart = (n + t).prod(axis=0) - theta + (e + n).prod(axis=0) - empty - n.prod(axis=0)
    three = np.maximum(np.stack([empty, same, apart], axis=-1), 0.0)
    rest = np.maximum(1.0 - three.sum(axis=-1, keepdims=True), 0.0)
    return np.concatenate([three, rest], axis=-1)
