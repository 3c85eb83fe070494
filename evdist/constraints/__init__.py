"""Must-links and cannot-links: checked, drawn, expanded, asked for, and made ready for a sweep."""

from evdist.constraints.ask import propose_links
from evdist.constraints.check import check_links
from evdist.constraints.draw import random_links
from evdist.constraints.expand import expand_constraints
from evdist.constraints.late import late_rows
from evdist.constraints.table import link_table

__all__ = [
    "check_links",
    "expand_constraints",
    "late_rows",
    "link_table",
    "propose_links",
    "random_links",
]
