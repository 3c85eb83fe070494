"""The credal partition: one mass function per object, and everything that follows from it."""

from evdist.partition.core import CredalPartition
from evdist.partition.decisions import Decisions
from evdist.partition.summary import ClusterSizes, Summary

__all__ = ["ClusterSizes", "CredalPartition", "Decisions", "Summary"]
