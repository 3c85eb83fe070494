"""Dempster-Shafer theory on arrays: focal sets, and functions of masses on them.

A mass matrix ``m`` is (n, f), one row per object and one column per focal set, or (f,) for a
single mass function; column 0 is the empty set. Mass functions need not be normalised:
m(empty) is the evidence that an object belongs to no cluster. Functions here refuse masses that
are negative, infinite or not a number, naming the row, and do not ask whether rows sum to one
(:class:`evdist.CredalPartition` does). They keep float32 as float32, and never write to their
arguments. Those that may lead to other sets than the focal ones return ``(mass, focal)``.

Sets of clusters
    `FocalSets`, `mutual_neighbour_pairs`, `on_family`, `on_power_set`
Other forms of masses, and back
    `belief`, `plausibility`, `commonality`, `implicability`, `contour`, `singleton_belief`,
    `mass_from_belief`, `mass_from_plausibility`, `mass_from_commonality`,
    `mass_from_implicability`
Canonical decomposition
    `conjunctive_weights`, `disjunctive_weights`, `mass_from_conjunctive_weights`,
    `mass_from_disjunctive_weights`
Probabilities
    `pignistic`, `plausibility_transform`
Several sources
    `conjunctive`, `dempster`, `disjunctive`, `exclusive`, `yager`, `dubois_prade`, `pcr5`, `pcr6`,
    `cautious`, `bold`, `average`
One source
    `normalise`, `discount`, `dediscount`, `contextual_discount`, `contextual_reinforce`,
    `condition`, `geometric_condition`, `decondition`, `generalised_bayes`
Frames
    `refine`, `coarsen`, `ProductFrame`, `vacuous_extension`, `marginalise`
Distance and conflict
    `conflict`, `inclusion_conflict`, `jousselme`, `pignistic_distance`, `minkowski`,
    `belief_interval_distance`, `bhattacharyya`
Order
    `is_more_committed`, `specialisation`, `dempsterian_matrix`
Uncertainty
    `nonspecificity`, `dissonance`, `confusion`, `discord`, `strife`, `mass_entropy`,
    `pignistic_entropy`, `pal_entropy`, `deng_entropy`, `jirousek_shenoy_entropy`,
    `aggregated_uncertainty`
Decisions
    `expected_loss`, `best_act`, `interval_dominance`, `maximality`, `appriou`
Examples
    `random_masses`
"""

from evdist.belief.canonical import (
    bold,
    cautious,
    conjunctive_weights,
    disjunctive_weights,
    mass_from_conjunctive_weights,
    mass_from_disjunctive_weights,
)
from evdist.belief.combine import (
    average,
    conjunctive,
    dempster,
    disjunctive,
    dubois_prade,
    exclusive,
    yager,
)
from evdist.belief.conditioning import (
    condition,
    decondition,
    generalised_bayes,
    geometric_condition,
)
from evdist.belief.decisions import (
    appriou,
    best_act,
    expected_loss,
    interval_dominance,
    maximality,
)
from evdist.belief.discounting import (
    contextual_discount,
    contextual_reinforce,
    dediscount,
    discount,
)
from evdist.belief.distances import (
    belief_interval_distance,
    bhattacharyya,
    conflict,
    inclusion_conflict,
    jousselme,
    minkowski,
    pignistic_distance,
)
from evdist.belief.drawing import random_masses
from evdist.belief.families import on_family, on_power_set
from evdist.belief.focal import FocalSets, mutual_neighbour_pairs
from evdist.belief.frames import ProductFrame, coarsen, marginalise, refine, vacuous_extension
from evdist.belief.moebius import (
    mass_from_belief,
    mass_from_commonality,
    mass_from_implicability,
    mass_from_plausibility,
)
from evdist.belief.normalisation import normalise
from evdist.belief.ordering import dempsterian_matrix, is_more_committed, specialisation
from evdist.belief.redistribution import pcr5, pcr6
from evdist.belief.transforms import (
    belief,
    commonality,
    contour,
    implicability,
    pignistic,
    plausibility,
    plausibility_transform,
    singleton_belief,
)
from evdist.belief.uncertainty import (
    aggregated_uncertainty,
    confusion,
    deng_entropy,
    discord,
    dissonance,
    jirousek_shenoy_entropy,
    mass_entropy,
    nonspecificity,
    pal_entropy,
    pignistic_entropy,
    strife,
)

__all__ = [
    "FocalSets",
    "ProductFrame",
    "aggregated_uncertainty",
    "appriou",
    "average",
    "belief",
    "belief_interval_distance",
    "best_act",
    "bhattacharyya",
    "bold",
    "cautious",
    "coarsen",
    "commonality",
    "condition",
    "conflict",
    "confusion",
    "conjunctive",
    "conjunctive_weights",
    "contextual_discount",
    "contextual_reinforce",
    "contour",
    "decondition",
    "dediscount",
    "dempster",
    "dempsterian_matrix",
    "deng_entropy",
    "discord",
    "discount",
    "disjunctive",
    "disjunctive_weights",
    "dissonance",
    "dubois_prade",
    "exclusive",
    "expected_loss",
    "generalised_bayes",
    "geometric_condition",
    "implicability",
    "inclusion_conflict",
    "interval_dominance",
    "is_more_committed",
    "jirousek_shenoy_entropy",
    "jousselme",
    "marginalise",
    "mass_entropy",
    "mass_from_belief",
    "mass_from_commonality",
    "mass_from_conjunctive_weights",
    "mass_from_disjunctive_weights",
    "mass_from_implicability",
    "mass_from_plausibility",
    "maximality",
    "minkowski",
    "mutual_neighbour_pairs",
    "nonspecificity",
    "normalise",
    "on_family",
    "on_power_set",
    "pal_entropy",
    "pcr5",
    "pcr6",
    "pignistic",
    "pignistic_distance",
    "pignistic_entropy",
    "plausibility",
    "plausibility_transform",
    "random_masses",
    "refine",
    "singleton_belief",
    "specialisation",
    "strife",
    "vacuous_extension",
    "yager",
]
