"""Combination of several partitions into one, through what they say about pairs of objects."""

from evdist.combine.consensus import combine
from evdist.combine.graph import PairGraph, all_pairs_graph, coloured_graph
from evdist.combine.nearest import Nearest, nearest_partition
from evdist.combine.rules import Rule, combine_relations

__all__ = [
    "Nearest",
    "PairGraph",
    "Rule",
    "all_pairs_graph",
    "coloured_graph",
    "combine",
    "combine_relations",
    "nearest_partition",
]
