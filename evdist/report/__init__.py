"""The report of a clustering: one HTML file with its figures, that needs nothing else."""

from evdist.report.page import render_report, write_report

__all__ = ["render_report", "write_report"]
