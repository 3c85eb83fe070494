"""Must-links and cannot-links: checked, drawn, expanded and asked for."""

from evdist.constraints.ask import propose_links
from evdist.constraints.check import check_links
from evdist.constraints.draw import random_links
from evdist.constraints.expand import expand_constraints

__all__ = ["check_links", "expand_constraints", "propose_links", "random_links"]
