"""Evidential clustering with medoids: ECMdd and MECM."""
