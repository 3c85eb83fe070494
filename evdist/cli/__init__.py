"""The command line: ``evdist --help``."""

from evdist.cli.app import app, main

__all__ = ["app", "main"]
