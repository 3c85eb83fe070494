"""Training on all objects at once: L-BFGS, or a step for each weight that adapts.

References: Denoeux (2021), NN-EVCLUS, section 3.2; Silva, Almeida (1990), Speeding up
backpropagation, which is the paper's method.

Symbols
-------
theta   (p,) weights; g their gradient; eta (p,) steps
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize

__all__ = ["adaptive_steps", "lbfgs"]

#: A function of theta that gives its value and gradient.
Function = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]
#: Called after each iteration with the point and the value there; true stops.
After = Callable[[NDArray[np.float64], float], bool]

#: Corrections that L-BFGS remembers.
MEMORY = 20
#: First steps; factors of a step whose derivative kept its sign, or changed it; and of all steps
#: when the loss rose.
FIRST, GROW, SHRINK, BACK = 0.1, 1.2, 0.8, 0.5
#: Share of the last step that is taken again.
MOMENTUM = 0.5


def lbfgs(fun: Function, theta: NDArray[np.float64], max_iter: int, after: After) -> NDArray:
    """Quasi-Newton steps with line search, from scipy; the point of the last iteration."""

    def callback(intermediate_result: OptimizeResult) -> None:
        if after(intermediate_result.x, float(intermediate_result.fun)):
            raise StopIteration

    # The stopping rule is the caller's: only a vanishing gradient ends the iterations here.
    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": MEMORY, "ftol": 0.0,
               "gtol": 1e-9}  # fmt: skip
    found = minimize(fun, theta, jac=True, method="L-BFGS-B", callback=callback, options=options)
    return found.x


def adaptive_steps(
    fun: Function, theta: NDArray[np.float64], max_iter: int, after: After
) -> NDArray:
    """Gradient steps with momentum; each weight's step grows while its derivative keeps its sign.

    When the loss rises the point before is taken again, with all steps halved and no momentum.
    """
    eta = np.full_like(theta, FIRST)
    move = np.zeros_like(theta)
    value, g = fun(theta)
    before = g
    for _ in range(max_iter):
        move = -eta * g + MOMENTUM * move
        trial = theta + move
        new_value, new_g = fun(trial)
        if new_value > value:
            eta, move = eta * BACK, np.zeros_like(move)
        else:
            theta, value, before, g = trial, new_value, g, new_g
            same = np.sign(before) * np.sign(g)
            eta = eta * np.where(same > 0, GROW, np.where(same < 0, SHRINK, 1.0))
        if after(theta, value):
            break
    return theta
