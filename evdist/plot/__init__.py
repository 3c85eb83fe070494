"""Figures: what a credal partition, its fit and its pairs look like.

Every function draws on the Axes it is given, or on a Figure of its own, and returns the Axes
(one panel) or the Figure (several panels). Nothing touches the state of ``matplotlib.pyplot``, so
figures can be drawn on servers and in threads; show one with ``ax.figure`` in a notebook, or keep
it with ``ax.figure.savefig(...)``.
"""

from evdist.plot.bars import nonspecificity, sizes
from evdist.plot.calibration import calibration
from evdist.plot.compare import consistency_plane, partition_map
from evdist.plot.curves import convergence, delta_bel, nonspecificity_curve
from evdist.plot.density import shepard
from evdist.plot.hulls import approximations
from evdist.plot.maps import contour_map, mass_map
from evdist.plot.matrices import distance_matrix, pair_histogram, relation_matrix
from evdist.plot.mixtures import bic_curves, ellipses, scatter_matrix
from evdist.plot.profiles import class_table, mass_profile
from evdist.plot.risk import risk_coverage
from evdist.plot.select import selection_curve
from evdist.plot.style import to_png, to_svg
from evdist.plot.tree import tree
from evdist.sketch.pairs import PairDensity
from evdist.sketch.palette import cluster_colour, cluster_marker

__all__ = [
    "PairDensity",
    "approximations",
    "bic_curves",
    "calibration",
    "class_table",
    "cluster_colour",
    "cluster_marker",
    "consistency_plane",
    "contour_map",
    "convergence",
    "delta_bel",
    "distance_matrix",
    "ellipses",
    "mass_map",
    "mass_profile",
    "nonspecificity",
    "nonspecificity_curve",
    "pair_histogram",
    "partition_map",
    "relation_matrix",
    "risk_coverage",
    "scatter_matrix",
    "selection_curve",
    "shepard",
    "sizes",
    "to_png",
    "to_svg",
    "tree",
]
