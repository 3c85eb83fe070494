"""Row programs in plain torch, float64: any number of focal sets, on any device.

The reference of the CUDA kernels and their stand-in where these do not reach (more than
MAX_FOCAL_SETS focal sets, or no GPU). Rows of a colour are solved side by side as batches of small
matrices; the algorithm is that of `evdist.kernels.simplex`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise

import torch
from torch import Tensor

from evdist.evclus.rows.arrays import Partners, Posteriors, State, on_grid
from evdist.kernels.distances import FLOORED

#: Proximal term, relative to the mean diagonal of S on the working set.
_EPS = 1e-11
#: Relative error allowed in the optimality conditions: that of masses rounded to the grid.
_TOL = 1e-8
#: More rounds than this only happen between ties at rounding level.
_MAX_ROUNDS = 200
#: Numbers of a gathered block at most.
_ROOM = {"cpu": 1 << 22, "cuda": 1 << 27}


def _gather(table: Tensor, at: Tensor) -> Tensor:
    """Rows of a table in tiles (T, w, 32) at positions (...): (..., w)."""
    return table[at >> 5, :, at & 31]


def _equality_step(S: Tensor, g: Tensor, W: Tensor) -> Tensor:
    """Minimise d'Sd/2 + g'd with 1'd = 0 and d = 0 outside the working set W (R, f)."""
    count = W.sum(1, keepdim=True)
    diagonal = torch.diagonal(S, dim1=1, dim2=2)
    eps = _EPS * (diagonal * W).sum(1, keepdim=True) / count + 1e-200
    # Components outside W get a unit pivot and a zero right-hand side.
    inside = W[:, :, None] & W[:, None, :]
    H = torch.where(inside, S, 0.0) + torch.diag_embed(torch.where(W, eps, 1.0))
    mean = (g * W).sum(1, keepdim=True) / count
    sides = torch.stack([torch.where(W, mean - g, 0.0), W.double()], dim=2)
    L, failed = torch.linalg.cholesky_ex(H)
    if bool(failed.any()):
        # Rounding has eaten the proximal term of a singular S.
        more = torch.where(failed > 0, 1e-9 * diagonal.amax(1), 0.0)
        L, _ = torch.linalg.cholesky_ex(H + more[:, None, None] * torch.eye(W.shape[1]).to(H))
    y, z = torch.cholesky_solve(sides, L).unbind(2)
    d = y - y.sum(1, keepdim=True) / z.sum(1, keepdim=True) * z
    return torch.where(W, d - d.sum(1, keepdim=True) / count, 0.0)


def minimise_on_simplex(S: Tensor, g: Tensor, m: Tensor) -> Tensor:
    """Minimisers of m'Sm/2 - u'm on the simplex, a batch at a time.

    Parameters
    ----------
    S : (R, f, f) float64
    g : (R, f) float64, S m - u
    m : (R, f) float64, the start: on the simplex

    Returns
    -------
    (R, f) float64
    """
    out, left = m.clone(), torch.arange(len(m), device=m.device)
    W = m > 0
    tol = _TOL * torch.maximum(torch.diagonal(S, dim1=1, dim2=2).amax(1), g.abs().amax(1))
    for _ in range(_MAX_ROUNDS + m.shape[1]):
        d = _equality_step(S, g, W)
        ratio = torch.where(d < 0, m / -d, torch.inf)
        length, block = ratio.min(1)
        blocked = length < 1.0
        d = d * length.clamp(max=1.0)[:, None]
        m = (m + d).clamp(min=0.0)
        g = g + (S @ d[:, :, None])[:, :, 0]
        hit = torch.zeros_like(W).scatter_(1, block[:, None], blocked[:, None])
        m = torch.where(hit, 0.0, m)
        # On W the gradient is constant up to rounding: its value is the multiplier nu.
        nu = (g * W).sum(1) / W.sum(1)
        spread = torch.where(W, g - nu[:, None], 0.0).abs().amax(1)
        settled = ~blocked & ((spread <= tol) | (d.abs().amax(1) <= 1e-15))
        lowest, enter = torch.where(W, torch.inf, g).min(1)
        enters = settled & (lowest < nu - tol)
        W = W & ~hit
        W = W | torch.zeros_like(W).scatter_(1, enter[:, None], enters[:, None])
        more = ~settled | enters
        if not bool(more.all()):
            out[left[~more]] = m[~more]
            S, g, m, W, tol, left = (x[more] for x in (S, g, m, W, tol, left))
        if not len(left):
            return out
    out[left] = m
    return out


class SummedKernels(ABC):
    """The objective of a whole problem from the `losses` of its rows."""

    @abstractmethod
    def losses(self, state: State, colour: int, place: int, rows: int) -> Tensor:
        """(P, rows) float64: of each row, the sum over its pairs of w (kappa - delta)^2."""

    def objective(self, state: State) -> Tensor:
        """(P,) float64: sum over rows and their pairs of w (kappa - delta)^2."""
        total = torch.zeros(len(state.mass), dtype=torch.float64, device=state.mass.device)
        for colour, (lo, hi) in enumerate(pairwise(state.graph.bounds)):
            total += self.losses(state, colour, 0, hi - lo).sum(1)
        return total


class TorchKernels(SummedKernels):
    """The operations of a fit on rows, in torch."""

    def update(self, state: State, colour: int, places: Tensor | None = None) -> None:
        """Minimise over rows of a colour, the others fixed: all, or those at `places` (int32)."""
        for p, place in _rows_of_colour(state, colour, places):
            self._update_block(state, colour, p, place)

    @staticmethod
    def _update_block(state: State, colour: int, p: Tensor, place: Tensor) -> None:
        A, w, delta = _pairs(state, colour, p, place)
        i = place + state.graph.bounds[colour]
        m = state.mass[p, i >> 5, :, i & 31].double()
        kappa = (A @ m[:, :, None])[:, :, 0]
        g = (A.mT @ (w * (kappa - delta))[:, :, None])[:, :, 0]
        u = torch.zeros_like(m) if state.extra is None else _gather(state.extra, i).double()
        new = on_grid(minimise_on_simplex((A * w[:, :, None]).mT @ A, g + u, m))
        step = new.double() - m
        moved = (A @ step[:, :, None])[:, :, 0]
        # (new - old)(new + old - 2 delta): no digits are lost when the change is small.
        gain = (w * moved * (2 * kappa + moved - 2 * delta)).sum(1) + 2 * (u * step).sum(1)
        better = gain < 0
        state.change[p, i] = torch.where(better, gain, 0.0).float()
        p, at, new = p[better], i[better], new[better]
        state.mass[p, at >> 5, :, at & 31] = new
        for v, C in enumerate(state.projections.double()):
            first = v * state.mass.shape[1]
            state.table[p, first + (at >> 5), :, at & 31] = (new.double() @ C).float()

    def losses(self, state: State, colour: int, place: int, rows: int) -> Tensor:
        """(P, rows) float64: sums over the pairs of each row of w (kappa - delta)^2.

        Rows are those of a colour from `place` on.
        """
        device = state.mass.device
        out = torch.empty(len(state.mass), rows, dtype=torch.float64, device=device)
        places = torch.arange(place, place + rows, device=device)
        for p, at in _rows_of_colour(state, colour, places):
            A, w, delta = _pairs(state, colour, p, at)
            i = at + state.graph.bounds[colour]
            m = state.mass[p, i >> 5, :, i & 31].double()
            gap = (A @ m[:, :, None])[:, :, 0] - delta
            out[p, at - place] = (w * gap * gap).sum(1)
        return out

    def assign(
        self, mass: Tensor, table: Tensor, delta: Tensor, partners: Partners,
        lo: int, rows: int, place: int, spread: int,
    ) -> None:  # fmt: skip
        """Rows lo .. lo + rows - 1 of `mass` (T, f, 32): minimisers against fixed landmarks.

        Row r of these meets landmarks (spread (place + r) + shift) mod size of `table`, at
        dissimilarities delta (k, >= rows). The start is the best single focal set.
        """
        f = mass.shape[1]
        for a, b in _blocks(rows, partners.k * f + f * f, mass.device):
            r = torch.arange(a, b, device=mass.device)
            at, _ = partners.positions((r + place) * spread)
            A = _gather(table, at).double().transpose(0, 1)
            S = A.mT @ A
            g = -(A.mT @ delta[:, a:b].double().T[:, :, None])[:, :, 0]
            best = (torch.diagonal(S, dim1=1, dim2=2) + 2 * g).argmin(1)
            start = torch.nn.functional.one_hot(best, f).double()
            g = g + S[torch.arange(b - a, device=mass.device), best]
            i = r + lo
            mass[i >> 5, :, i & 31] = on_grid(minimise_on_simplex(S, g, start))

    def distances(
        self, mine: Tensor, others: Tensor, out: Tensor, partners: Partners,
        code: tuple[int, int], gamma: float, *, lo: int, first: int, rows: int,
        place: int, spread: int,
    ) -> None:  # fmt: skip
        """Dissimilarities of rows lo .. lo + rows - 1 of `mine` (T, d, 32) to those of `others`.

        out (k, m) is filled from column `first` on; transformed where gamma > 0, k-CEVCLUS eq. (5).
        """
        d = mine.shape[1]
        for a, b in _blocks(rows, partners.k * d, mine.device):
            r = torch.arange(a, b, device=mine.device)
            at, there = partners.positions((r + place) * spread)
            gap = _gather(mine, r + lo) - _gather(others, at)
            total, end = code
            if total == FLOORED:
                # As evdist.kernels.distances: the last numbers are the roots of noise floors.
                h, g = _gather(mine[:, -1:], r + lo), _gather(others[:, -1:], at)
                floors = (gap * gap)[..., -1] + (h * h + g * g)[..., 0]
                D = ((gap * gap).sum(2) - floors).clamp(min=0)
            elif total == 0:
                D = (gap * gap).sum(2)
            elif total == 1:
                D = gap.abs().sum(2)
            elif total == 2:
                D = gap.abs().amax(2)
            else:
                D = (gap != 0).sum(2).float()
            D = (D, D.sqrt(), D * 0.5, D / d)[end]
            if gamma > 0:
                D = -torch.expm1(-gamma * D.double() ** 2)
            out[:, first + a : first + b] = torch.where(there, D, 0.0).to(out.dtype)

    def intervals(
        self, held: Posteriors, out: Tensor, partners: Partners,
        quantiles: tuple[int, float, int, float], *, own: int, lo: int, place: int, rows: int,
    ) -> None:  # fmt: skip
        """Percentile intervals of the pairs of the rows at places place .. place + rows - 1.

        Columns lo + place .. of out (2 k, n) receive P^l of each pair, then 1 - P^u. The row's
        colour begins at `own` among the posteriors, that of partner h at partners.base[h].
        """
        low, low_part, high, high_part = quantiles
        k, size = partners.k, partners.size
        for a, b in _blocks(rows, k * held.c * held.B, out.device):
            t = torch.arange(place + a, place + b, device=out.device)
            p = (t + partners.shift.long()[:, None]) % size
            there = p < partners.lim[:, None]
            at = partners.base.long()[:, None] + (p - held.first) % size
            mine = _gather(held.values, own + (t - held.first) % size)
            other = _gather(held.values, torch.where(there, at, 0))
            v = (mine * other).reshape(k, b - a, held.c, held.B).sum(2).sort(2)[0].double()

            def quantile(i: int, part: float, v: Tensor = v) -> Tensor:
                value, after = v[:, :, i], v[:, :, min(i + 1, held.B - 1)]
                return (value + part * (after - value)).clamp(max=1.0)

            found = torch.cat([quantile(low, low_part), 1 - quantile(high, high_part)])
            found = torch.where(there.repeat(2, 1), found, 0.0)
            out[:, lo + place + a : lo + place + b] = found.float()


def _rows_of_colour(
    state: State, colour: int, places: Tensor | None
) -> list[tuple[Tensor, Tensor]]:
    """Blocks of (problem, place) that fit into memory: all problems, rows of one colour."""
    lo, hi = state.graph.bounds[colour : colour + 2]
    device = state.mass.device
    if places is None:
        places = torch.arange(hi - lo, device=device)
    count, width = len(places), state.graph.k * state.f + state.f**2
    blocks = []
    for a, b in _blocks(count * len(state.mass), width, device):
        t = torch.arange(a, b, device=device)
        blocks.append((t // count, places[t % count].long()))
    return blocks


def _pairs(state: State, colour: int, p: Tensor, place: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Table rows (R, k, f), weights (R, k) and dissimilarities (R, k) of a block, float64."""
    at, there = state.graph.colours[colour].positions(place)
    i = place + state.graph.bounds[colour]
    A = state.table[p, at >> 5, :, at & 31].double() * there[:, :, None]
    w = there.double()
    if state.weight is not None:
        w = w * (state.weight[i] * state.weight[at]).double()
    return A.transpose(0, 1), w.T, state.delta[p, :, i - state.first].double()


def _blocks(rows: int, width: int, device: torch.device) -> list[tuple[int, int]]:
    size = max(1, _ROOM[device.type] // max(width, 1))
    return [(a, min(a + size, rows)) for a in range(0, rows, size)]
