"""The preliminary partition of many clusters on a device: `evdist.evclus.groups` in torch.

The same stages on a sample of the same size: seeds by k-means++, a few of Lloyd's iterations,
Ward's method (on the host), all this again without what lies apart, Lloyd's iterations from the
merged means, the choice of the likelier partition (on the host); then every object goes to the
group of the nearest mean. The draws are not those of the CPU, so the groups are not either.

The same groups every time: sums are made of whole numbers, which have no order of adding, and
blocks have a fixed size.

Symbols
-------
c, q    clusters, small groups
V       (q, d) means
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from evdist.data.sources import AttributeSource
from evdist.evclus.groups import Groups, likelier, sample_of, small_groups
from evdist.evclus.means import LLOYD, LLOYD_END, Means
from evdist.evclus.outlying import Attempt, group_again
from evdist.evclus.rows.attributes import sent_rows

#: Distances of a block at most.
_ROOM = 1 << 27
#: Chances of k-means++ and coordinates, in units of the largest.
_CHANCES, _UNITS = float(1 << 40), float(1 << 31)


def groups_on(device: torch.device, source: AttributeSource, c: int, seed: int) -> Groups:
    """A preliminary partition into c groups, fewer where objects are equal."""
    rng, some = sample_of(source.n, c, seed)
    d = len(source.metric.centre)
    sample = np.ascontiguousarray(source.table[some, :d])
    S = torch.as_tensor(sample).to(device)
    merged, kept = group_again(len(S), c, lambda rows: _merged(S, rows, c, rng))
    apart = 1.0 - len(kept) / len(S)
    if apart:
        S, some, sample = S[torch.as_tensor(kept).to(device)], some[kept], sample[kept]
    start = torch.as_tensor(merged.middles().astype(np.float32)).to(device)
    V, count = _lloyd(S, start, LLOYD_END)
    single = Means.single(V[count > 0].cpu().numpy())
    both = [(means, _labels(S, means)) for means in (merged, single)]
    means = likelier(sample, *both).numbered()
    V, group = torch.as_tensor(means.V).to(device), torch.as_tensor(means.group).to(device)
    labels = torch.empty(source.n, dtype=torch.int32, device=device)
    size = _rows_at_once(len(V), d)
    for part, rows in enumerate(sent_rows(source.table, d, device, size)):
        labels[part * size : (part + 1) * size] = group[_nearest(rows, V)]
    found = labels.cpu().numpy()
    return Groups(found, means.middle_objects(some, sample, found[some]), apart=apart)


def _merged(S: Tensor, rows: np.ndarray, c: int, rng: np.random.Generator) -> Attempt[Means]:
    """Small groups of some rows of the sample, merged by Ward's method."""
    if len(rows) < len(S):
        S = S[torch.as_tensor(rows).to(S.device)]
    means, rows_of = _lloyd(S, _seeds(S, min(small_groups(c), len(S)), rng), LLOYD)
    V, count = means[rows_of > 0], rows_of[rows_of > 0].cpu().numpy()
    merged = Means.merged(V.cpu().numpy(), count, c)
    return Attempt(merged, count, merged.group, lambda: _next_to(S, V))


def _labels(S: Tensor, means: Means) -> np.ndarray:
    """The groups of the rows of S, on the host."""
    return means.group[_next_to(S, torch.as_tensor(means.V).to(S.device))]


def _next_to(S: Tensor, V: Tensor) -> np.ndarray:
    """The mean next to each row of S, on the host."""
    parts = S.split(_rows_at_once(len(V), S.shape[1]))
    return torch.cat([_nearest(part, V) for part in parts]).cpu().numpy()


def _rows_at_once(q: int, d: int) -> int:
    return max(1024, _ROOM // max(q, d) // 1024 * 1024)


def _nearest(rows: Tensor, V: Tensor) -> Tensor:
    """The mean next to each row, of equally near ones the first."""
    norm = (V.double() ** 2).sum(1).float()
    return torch.addmm(norm, rows, V.T, alpha=-2.0).argmin(1)


def _seeds(S: Tensor, q: int, rng: np.random.Generator) -> Tensor:
    """k-means++: seeds are drawn with chances that are their squared distances to those before.

    Differs: an eighth of those before at a time, which takes dozens of draws instead of q. Chances
    are whole numbers: their running sums are the same every time.
    """
    draws = torch.as_tensor(rng.random(q)).to(S.device)
    first = int(rng.integers(len(S)))
    chosen = [torch.full((1,), first, dtype=torch.int64, device=S.device)]
    far = ((S - S[first]) ** 2).sum(1)
    unit = _CHANCES / far.max().double().clamp(min=1e-300)
    done = 1
    while done < q:
        count = min(max(1, done // 8), q - done)
        sums = torch.cumsum((far.double() * unit).long(), 0)
        # Where all objects are seeds already, one is drawn again: a group without objects.
        places = (draws[done : done + count] * sums[-1].double()).long()
        at = torch.searchsorted(sums, places, right=True).clamp(max=len(S) - 1)
        chosen.append(at)
        norm = (S[at].double() ** 2).sum(1).float() + (S**2).sum(1)[:, None]
        near = torch.addmm(norm, S, S[at].T, alpha=-2.0).amin(1).clamp(min=0)
        far = torch.minimum(far, near)
        far[at] = 0.0
        done += count
    return S[torch.cat(chosen)]


def _lloyd(S: Tensor, V: Tensor, rounds: int) -> tuple[Tensor, Tensor]:
    """Means after some of Lloyd's iterations, and how many rows each has, (q,)."""
    unit = _UNITS / S.abs().max().double().clamp(min=1e-300)
    whole = torch.round(S.double() * unit).long()
    size, before = _rows_at_once(len(V), S.shape[1]), None
    for _ in range(rounds):
        label = torch.cat([_nearest(part, V) for part in S.split(size)])
        count = torch.bincount(label, minlength=len(V))
        if before is not None and torch.equal(label, before):
            break
        sums = torch.zeros(V.shape, dtype=torch.int64, device=V.device)
        sums.index_add_(0, label, whole)
        means = sums.double() / unit / count.clamp(min=1)[:, None]
        # A mean without rows stays where it is.
        V = torch.where(count[:, None] > 0, means.float(), V)
        before = label
    return V, count
