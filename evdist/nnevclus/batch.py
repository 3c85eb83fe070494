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
import torch
from numpy.typing import NDArray
from scipy import optimize

from evdist.engine.loop import Solution
from evdist.engine.memory import check_memory
from evdist.engine.progress import Clock, Report
from evdist.kernels.threads import one_blas_thread
from evdist.nnevclus.deltas import draw_pairs, make_deltas
from evdist.nnevclus.loss import Loss
from evdist.nnevclus.network import FlatWeights, Inputs, Network, one_thread, weights_of
from evdist.nnevclus.problem import Problem
from evdist.nnevclus.training import Schedule

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


def fit_batch(
    problem: Problem,
    network: Network,
    k: int | None,
    schedule: Schedule,
    *,
    report: Report,
    stage: str,
) -> Solution[dict[str, NDArray]]:
    """Minimise eq. (9), or with k kept pairs of each object eq. (15).

    Not engine.loop.minimise: scipy's L-BFGS runs its own loop and calls back.
    """
    n, device, seed = len(problem.x), problem.device, schedule.seed
    order = np.random.default_rng([seed, 17]).permutation(n)
    held, own = np.split(order, [round(schedule.validation * n)])
    own = np.sort(own)
    _check_memory(len(own), len(held), k, device)
    clock = Clock(report, stage, schedule.max_iter, rows=n)
    with one_thread():
        network.to(device)
        flat = FlatWeights(network)
        inputs = Inputs.of(problem.x, problem.fx, device)
        loss = Loss(network, problem.terms, device)
        group = loss.groups(network, inputs)
        every = problem.objects.source
        source = every.subset(own.astype(np.uint32)) if len(held) else every
        mine, others = torch.from_numpy(own).to(device), torch.from_numpy(held).to(device)
        deltas = make_deltas(every, problem.d0).on(device)
        pairs = deltas(mine) if k is None else draw_pairs(source, k, problem.d0, seed, device)
        outside = deltas(others) if len(held) else None
        my_group, other_group = (None if group is None else group[some] for some in (mine, others))
        theta = flat.theta.double().cpu().numpy()
        best, kept, since = np.inf, theta.copy(), 0

        def fun(theta: NDArray) -> tuple[float, NDArray[np.float64]]:
            flat.theta.copy_(torch.from_numpy(theta))
            flat.grad.zero_()
            value = loss(inputs.masses(network, mine), pairs, my_group)
            value.backward()
            return float(value.detach()), flat.grad.double().cpu().numpy()

        def after(theta: NDArray, value: float) -> bool:
            """Whether the watched loss has not fallen by `tol` for `patience` iterations."""
            nonlocal best, kept, since
            history.append(value)
            clock.tell(len(history) - 1, value, value - history[-2])
            watched = value
            if outside is not None:
                flat.theta.copy_(torch.from_numpy(theta))
                network.eval()
                with torch.no_grad():
                    watched = float(loss(inputs.masses(network, others), outside, other_group))
                network.train()
            if watched < best * (1 - schedule.tol):
                best, kept, since = watched, theta.copy(), 0
            else:
                since += 1
            return since >= schedule.patience

        network.train()
        history = [fun(theta)[0]]
        method = lbfgs if schedule.optimizer == "lbfgs" else adaptive_steps
        theta = method(fun, theta, schedule.max_iter, after)
        # L-BFGS also ends where its line search finds nothing lower, which is the end as well.
        converged = since >= schedule.patience or len(history) - 1 < schedule.max_iter
        network.eval()
        history[-1] = fun(theta if outside is None else kept)[0]
        return Solution(weights_of(network), history, converged, clock.seconds)


def _check_memory(own: int, held: int, k: int | None, device: torch.device) -> None:
    """A pair of objects has a dissimilarity and a residual; a kept pair also its partner."""
    parts = {f"all pairs of {own:,} objects": 8 * own**2}
    if k is not None:
        parts = {f"{own:,} x {k} kept pairs": 16 * own * k}
    if held:
        parts[f"all pairs of {held:,} held-out objects"] = 8 * held**2
    on_gpu = device.type == "cuda"
    check_memory(
        parts,
        "Train by mini-batches (batch_size), or keep fewer pairs (n_dissimilarities).",
        free=torch.cuda.mem_get_info(device)[0] if on_gpu else None,
        where="on the GPU" if on_gpu else "here",
    )


def lbfgs(fun: Function, theta: NDArray[np.float64], max_iter: int, after: After) -> NDArray:
    """Quasi-Newton steps with line search, from scipy; the point of the last iteration."""

    def callback(intermediate_result: optimize.OptimizeResult) -> None:
        if after(intermediate_result.x, float(intermediate_result.fun)):
            raise StopIteration

    # The stopping rule is the caller's: only a vanishing gradient ends the iterations here.
    options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "maxcor": MEMORY, "ftol": 0.0,
               "gtol": 1e-9}  # fmt: skip
    with one_blas_thread():
        return optimize.minimize(
            fun, theta, jac=True, method="L-BFGS-B", callback=callback, options=options
        ).x


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
