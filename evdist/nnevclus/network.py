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

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

#: beta0 and beta1 before training: all but open inside the region, all but shut far outside.
BETA = (-4.0, -2.0)
#: Gain of the last layer before training: masses start near each other, and fewer starts get stuck.
HEAD = 0.05
#: Rows that the network, or the gate, works on at a time. Always so many, the last ones filled up:
#: what an object gets must not depend on the objects beside it.
ROWS = 1024


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


# ---------------------------------------------------------------------- making and using networks
def draw_networks(
    hidden: Sequence[int],
    body: nn.Module | None,
    x: NDArray[np.float32],
    f: int,
    has_gate: bool,
    *,
    n_init: int,
    seed: int,
) -> list[Network]:
    """Networks with drawn weights for inputs x (n, d) and f focal sets.

    A given body keeps its weights in the first of them.
    """
    found = []
    for i in range(n_init):
        rng = np.random.default_rng([seed, 23, i])
        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**62)))
            if body is None:
                network = Network(layers((x.shape[1], *hidden)), hidden[-1], f, has_gate)
                network.draw(rng, x)
            else:
                own = copy.deepcopy(body).to("cpu", torch.float32)
                for part in own.modules() if i else ():
                    if hasattr(part, "reset_parameters"):
                        part.reset_parameters()  # type: ignore[operator]
                network = Network(own, _width(own, x), f, has_gate)
        found.append(network)
    return found


def rebuild_network(weights: dict[str, NDArray], body: nn.Module | None) -> Network:
    """The network with these weights, on the CPU."""
    f, h = weights["head.weight"].shape
    with torch.random.fork_rng():  # layers are born with random weights
        if body is None:
            matrices = [name for name in weights if name.startswith("body") and "weight" in name]
            matrices.sort(key=lambda name: int(name.split(".")[1]))
            own: nn.Module = layers((*(weights[name].shape[1] for name in matrices), h))
        else:
            own = copy.deepcopy(body).to("cpu", torch.float32)
        network = Network(own, h, f, "beta" in weights)
    network.load_state_dict({name: torch.from_numpy(np.array(v)) for name, v in weights.items()})
    return network.eval()


def weights_of(network: Network) -> dict[str, NDArray]:
    """Weights and buffers, on the CPU."""
    return {name: value.cpu().numpy().copy() for name, value in network.state_dict().items()}


def _width(body: nn.Module, x: NDArray[np.float32]) -> int:
    """Features that a user's module gives, tried on two rows."""
    rows = x[: min(2, len(x))]
    body.eval()
    with torch.no_grad():
        out = body(torch.from_numpy(np.ascontiguousarray(rows)))
    if not isinstance(out, Tensor) or out.ndim != 2 or len(out) != len(rows):
        shape = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise ValueError(
            f"body must give (rows, features) for inputs {tuple(rows.shape)}, got {shape}. End it "
            "with torch.nn.Flatten()."
        )
    return out.shape[1]


@dataclass(frozen=True)
class Inputs:
    """Inputs x (n, d) of a network, and f(x) (n,) where it has a gate, on one device."""

    x: Tensor
    fx: Tensor | None

    @classmethod
    def of(cls, x: NDArray, fx: NDArray | None, device: torch.device) -> Inputs:
        return cls(as_tensor(x, device), None if fx is None else as_tensor(fx, device))

    def masses(self, network: Network, rows: Tensor | slice) -> Tensor:
        return network(self.x[rows], None if self.fx is None else self.fx[rows])


def network_masses(
    network: Network, x: NDArray, fx: NDArray | None, device: torch.device
) -> NDArray[np.float32]:
    """Masses of objects with inputs x (n, d), (n, f), in blocks of equal size."""
    found = []
    network.to(device).eval()
    with one_thread(), torch.no_grad():
        for lo in range(0, len(x), ROWS):
            rows = x[lo : lo + ROWS]
            fill = ROWS - len(rows)
            block = Inputs.of(
                np.pad(rows, ((0, fill), (0, 0))),
                None if fx is None else np.pad(fx[lo : lo + ROWS], (0, fill)),
                device,
            )
            found.append(block.masses(network, slice(None)).cpu().numpy()[: len(rows)])
    mass = np.concatenate(found)
    return mass / mass.sum(axis=1, keepdims=True)


def as_tensor(values: NDArray, device: torch.device) -> Tensor:
    """Values in float32, where the network is."""
    return torch.as_tensor(np.ascontiguousarray(values, dtype=np.float32), device=device)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread inside torch's operations, so that sums have the same bits everywhere.

    The networks are small: a second thread would wait more than it works.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
