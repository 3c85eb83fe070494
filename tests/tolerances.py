"""Every tolerance of the test suite, with the reason for its size.

Import the one that fits, ``from tolerances import REFERENCE``, and pass it by name:
``np.testing.assert_allclose(got, expected, **REFERENCE)``.
"""

from __future__ import annotations

#: The same formula in float64, summed in another order.
ROUNDING = {"rtol": 1e-12, "atol": 1e-12}

#: Sums of logarithms and back, as weights of evidence are found: some digits of the rounding go.
LOGARITHMS = {"rtol": 1e-8, "atol": 1e-10}

#: Square roots of differences that are 0 but for rounding.
ROOTS = {"rtol": 1e-9, "atol": 1e-7}

#: Choices between shares that differ by rounding only, which change what follows as little.
TIES = {"rtol": 1e-9, "atol": 1e-9}

#: Values computed by R's evclust from the same masses, written with all their digits.
REFERENCE = {"rtol": 1e-10, "atol": 1e-10}

#: Masses kept as float32 against the same masses in float64.
SINGLE = {"rtol": 1e-5, "atol": 1e-6}

#: Numbers printed in a paper with two, three or four decimals.
PRINTED_2 = {"rtol": 0.0, "atol": 0.5e-2 + 1e-9}
PRINTED_3 = {"rtol": 0.0, "atol": 0.5e-3 + 1e-9}
PRINTED_4 = {"rtol": 0.0, "atol": 0.5e-4 + 1e-9}
