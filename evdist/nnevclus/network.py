"""The network of NN-EVCLUS: from attributes to mass functions, with a gate for novel objects.

Reference: Denoeux (2021), NN-EVCLUS, section 3.1, eqs. (8)-(13).

Symbols
-------
x       (n, d) inputs
mu      (n, f) activations of the outputs, one for each focal set
m       (n, f) masses, the softmax of mu
fx      (n,) output of the one-class SVM: positive inside the region of the data
gamma   (n,) share of the mass that the gate moves to the empty set
beta    (2,) beta0, beta1, learnt with the weights

Differs: eq. (12) prints m* = gamma m + (1 - gamma) m_0; appendices A.12, B and C, and R's evclust,
belong to m* = (1 - gamma) m + gamma m_0 with beta1 < 0, which is what we take. Then gamma can
vanish for most objects; as printed the gate would only be open at infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

__all__ = ["FlatWeights", "Network", "gated", "layers", "shut_share"]

#: beta0 and beta1 before training: all but open inside the region, all but shut far outside.
BETA = (-4.0, -2.0)
#: Gain of the last layer before training: masses start near each other, and fewer starts get stuck.
HEAD = 0.05


def shut_share(fx: Tensor, beta: Tensor) -> Tensor:
    """gamma = eta / (1 + eta) with eta = log(1 + exp(beta0 + beta1 f(x))), eq. (13); (n,)."""
    eta = nn.functional.softplus(beta[0] + beta[1] * fx)
    return eta / (1 + eta)


def gated(m: Tensor, gamma: Tensor) -> Tensor:
    """m* = (1 - gamma) m + gamma m_0, where m_0 puts all mass on the empty set, eq. (12)."""
    shut = torch.zeros_like(m)
    shut[:, 0] = 1.0
    return torch.lerp(m, shut, gamma[:, None])


def layers(widths: Sequence[int]) -> nn.Sequential:
    """Linear layers with rectified units after each, eq. (10): widths d, n_H1, n_H2, ..."""
    parts: list[nn.Module] = []
    for a, b in pairwise(widths):
        parts += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*parts)


class Network(nn.Module):
    """Body (any module from rows to features), a linear layer to the focal sets, and the gate.

    Parameters
    ----------
    body : Module
        (n, ...) inputs to (n, h) features.
    h, f : int
        Features of the body; focal sets.
    has_gate : bool
    """

    def __init__(self, body: nn.Module, h: int, f: int, has_gate: bool):
        super().__init__()
        self.body = body
        self.head = nn.Linear(h, f)
        self.beta = nn.Parameter(torch.tensor(BETA)) if has_gate else None

    def forward(self, x: Tensor, fx: Tensor | None = None) -> Tensor:
        """Masses m*, (n, f); `fx` is needed with a gate."""
        m = torch.softmax(self.head(self.body(x)), dim=1)  # eq. (11)
        if self.beta is None:
            return m
        assert fx is not None
        return gated(m, shut_share(fx, self.beta))

    def draw(self, rng: np.random.Generator, x: NDArray) -> None:
        """Draw the weights of `layers` and of the head.

        Directions as usual for rectified units. The kink of each first-layer unit goes through a
        random one of the objects `x` (n, d): with few attributes, kinks through one point only
        leave most of the space to the same units.
        """
        linear = [part for part in self.body.children() if isinstance(part, nn.Linear)]
        for layer in (*linear, self.head):
            h, d = layer.weight.shape
            gain = HEAD if layer is self.head else 2.0
            v = rng.normal(0.0, np.sqrt(gain / d), (h, d))
            bias = np.zeros(h)
            if layer is linear[0]:
                bias = -(v * x[rng.integers(len(x), size=h)]).sum(axis=1)
            _fill(layer.weight, v)
            _fill(layer.bias, bias)
        if self.beta is not None:
            _fill(self.beta, np.array(BETA))

    def penalty(self) -> Tensor:
        """Half the sum over layers of the mean square of their weights and biases.

        Section 3.2, the factor of lambda in L_R; any module with weights of its own is a layer.
        """
        total = torch.zeros((), dtype=self.head.weight.dtype, device=self.head.weight.device)
        for part in (*self.body.modules(), self.head):
            own = list(part.parameters(recurse=False))
            if own:
                count = sum(p.numel() for p in own)
                squares = [(p * p).sum() for p in own]
                total = total + torch.stack(squares).sum() / count
        return 0.5 * total


def _fill(parameter: torch.Tensor, values: NDArray) -> None:
    with torch.no_grad():
        parameter.copy_(torch.as_tensor(values))


class FlatWeights:
    """All trainable weights of a module, and their gradients, as two vectors.

    The module's parameters become views, so that a step of an optimiser is a few operations and
    the gradient travels between processes in one piece.

    Attributes
    ----------
    theta : (p,) tensor, `theta.grad` its gradient
    """

    def __init__(self, module: nn.Module):
        parameters = [p for p in module.parameters() if p.requires_grad]
        self.theta = torch.cat([p.detach().reshape(-1) for p in parameters])
        grad = torch.zeros_like(self.theta)
        at = 0
        for p in parameters:
            p.data = self.theta[at : at + p.numel()].view(p.shape)
            p.grad = grad[at : at + p.numel()].view(p.shape)
            at += p.numel()
        self.theta.grad = grad

    @property
    def grad(self) -> Tensor:
        assert self.theta.grad is not None
        return self.theta.grad
