"""The command line: ``evdist --help``."""

from evdist.service.cli.app import app, main

__all__ = ["app", "main"]
