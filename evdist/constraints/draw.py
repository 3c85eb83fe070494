"""Links drawn from known labels, as the papers' experiments do."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evdist.constraints.check import Pairs


def random_links(
    y: ArrayLike, n_links: int, random_state: int | np.random.Generator | None = None
) -> tuple[Pairs, Pairs]:
    """Draw pairs of labelled objects: must-links where the labels agree, else cannot-links.

    All pairs are equally likely and none is drawn twice; k-CEVCLUS, section 4.1.

    Parameters
    ----------
    y : (n,) labels
        Integers, or anything that can be compared for equality; an integer below 0 says that the
        label is not known, and such an object is not drawn.
    n_links : int
        Links of both kinds together.
    random_state : int, Generator or None

    Returns
    -------
    ml : (p, 2) int64
    cl : (n_links - p, 2) int64
    """
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"y must be one label per object, shape (n,), got shape {y.shape}.")
    labelled = np.flatnonzero(y >= 0) if y.dtype.kind in "iu" else np.arange(len(y))
    n = len(labelled)
    total = n * (n - 1) // 2
    if not 0 <= n_links <= total:
        raise ValueError(
            f"{n} labelled objects have {total} pairs, so n_links must be 0 to {total}, got "
            f"{n_links}."
        )
    rng = np.random.default_rng(random_state)
    code = rng.choice(total, n_links, replace=False) if n_links else np.empty(0, np.int64)
    # Pair (i, j), i < j, has the code j (j - 1) / 2 + i; the root may be off by one.
    j = ((1 + np.sqrt(1 + 8 * code.astype(float))) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > code
    j += j * (j + 1) // 2 <= code
    pairs = labelled[np.column_stack([code - j * (j - 1) // 2, j])]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return pairs[same], pairs[~same]
