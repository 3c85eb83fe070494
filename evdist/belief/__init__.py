"""Dempster-Shafer theory on arrays: focal sets, and functions of masses on them.

A mass matrix ``m`` is (n, f), one row per object and one column per focal set, or (f,) for a
single mass function; column 0 is the empty set. Mass functions need not be normalised:
m(empty) is the evidence that an object belongs to no cluster. Functions here check shapes, not
values (:class:`evdist.CredalPartition` does that), keep float32 as float32, and never write to
their arguments.
"""

from evdist.belief.combine import average, conjunctive, dempster, disjunctive, dubois_prade
from evdist.belief.focal import FocalSets, mutual_neighbour_pairs
from evdist.belief.measures import conflict, jousselme, nonspecificity
from evdist.belief.moebius import (
    mass_from_belief,
    mass_from_commonality,
    mass_from_implicability,
    mass_from_plausibility,
)
from evdist.belief.normalisation import discount, normalise
from evdist.belief.transforms import (
    belief,
    commonality,
    contour,
    implicability,
    pignistic,
    plausibility,
    singleton_belief,
)

__all__ = [
    "FocalSets",
    "average",
    "belief",
    "commonality",
    "conflict",
    "conjunctive",
    "contour",
    "dempster",
    "discount",
    "disjunctive",
    "dubois_prade",
    "implicability",
    "jousselme",
    "mass_from_belief",
    "mass_from_commonality",
    "mass_from_implicability",
    "mass_from_plausibility",
    "mutual_neighbour_pairs",
    "nonspecificity",
    "normalise",
    "pignistic",
    "plausibility",
    "singleton_belief",
]
