"""A first look: ``python -m evdist.demo [--out DIR]``, see `evdist.service.demo`."""

from __future__ import annotations

from evdist.service.demo import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
