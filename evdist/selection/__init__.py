"""How many clusters: criteria of the data and of fits, the choice, and the model with that many."""

from evdist.selection.core import Candidate, Selection, choose, parameters_of, select
from evdist.selection.criteria import CRITERIA, criterion_for, curve_of, score_of

__all__ = ["CRITERIA", "Candidate", "Selection", "choose", "criterion_for", "curve_of"]
__all__ += ["parameters_of", "score_of", "select"]
