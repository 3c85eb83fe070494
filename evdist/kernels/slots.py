"""Where the slots of an encoded row lie, for compiled code: `evdist.kernels.sparse_rows`.

A module of its own: who only looks at masses does not wait for numba.
"""

from __future__ import annotations

from numba import njit

from evdist.kernels import sparse_rows

id_at = njit(cache=True, nogil=True, inline="always")(sparse_rows.id_at)
mass_at = njit(cache=True, nogil=True, inline="always")(sparse_rows.mass_at)
