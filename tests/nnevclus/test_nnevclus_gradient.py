"""The loss of NN-EVCLUS and its gradient: appendices A, B, C, finite differences, R's values."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest
import torch
from nnevclus.nnevclus_appendix import Appendix
from tolerances import REFERENCE, ROUNDING

from evdist.belief import FocalSets
from evdist.nnevclus.loss import (
    KeptPairs,
    all_pairs,
    kept_pairs,
    label_penalty,
    link_penalty,
    transformed,
)
from evdist.nnevclus.network import Network, gated, layers, shut_share

SETS = FocalSets.pairs(3)
N, D, H = 7, 2, 4


def tensor(values) -> torch.Tensor:
    return torch.tensor(np.asarray(values, dtype=float))


def put(network: Network, weights: list[np.ndarray], beta: np.ndarray | None) -> None:
    """Weights with the bias in column 0, hidden layers first."""
    linear = [p for p in network.body if isinstance(p, torch.nn.Linear)] + [network.head]
    with torch.no_grad():
        for layer, w in zip(linear, weights, strict=True):
            layer.weight.copy_(tensor(w[:, 1:]))
            layer.bias.copy_(tensor(w[:, 0]))
        if beta is not None:
            network.beta.copy_(tensor(beta))


def gradients(network: Network) -> list[np.ndarray]:
    linear = [p for p in network.body if isinstance(p, torch.nn.Linear)] + [network.head]
    return [torch.column_stack([p.bias.grad, p.weight.grad]).numpy() for p in linear]


@pytest.fixture
def case():
    """Random weights, inputs and gate, in float64, here and as the appendices have them."""
    rng = np.random.default_rng(5)
    V, W = rng.normal(size=(H, D + 1)), rng.normal(size=(len(SETS), H + 1))
    x, fx, beta = rng.normal(size=(N, D)), rng.normal(size=N), np.array([-0.3, -0.8])
    network = Network(layers((D, H)), H, len(SETS), True).double()
    put(network, [V, W], beta)
    return network, tensor(x), tensor(fx), Appendix(x, fx, V, W, beta, SETS.matrix.astype(int))


def agree(network: Network, wanted: list[np.ndarray]) -> None:
    found = [*gradients(network), network.beta.grad.numpy()]
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, expected, **ROUNDING)


def added(parts: list[list[np.ndarray]], scale: float) -> list[np.ndarray]:
    return [scale * sum(p) for p in zip(*parts, strict=True)]


def test_masses_are_those_of_the_equations(case):
    network, x, fx, paper = case
    np.testing.assert_allclose(network(x, fx).detach().numpy(), paper.star, **ROUNDING)


def test_gradient_of_all_pairs_is_that_of_appendix_a(case):
    network, x, fx, paper = case
    delta = np.random.default_rng(1).random((N, N))
    delta = (delta + delta.T) / 2
    loss = all_pairs(network(x, fx), tensor(SETS.C), tensor(delta))
    loss.backward()
    pairs = [(i, j) for i in range(N) for j in range(i)]
    value = np.mean([paper.pair(i, j, delta[i, j]) for i, j in pairs])
    np.testing.assert_allclose(loss.item(), value, **ROUNDING)
    agree(
        network, added([paper.pair_gradient(i, j, delta[i, j]) for i, j in pairs], 1 / len(pairs))
    )


def test_gradient_of_kept_pairs_is_that_of_appendix_a(case):
    network, x, fx, paper = case
    # A ring, with an unused place in each row.
    partner = np.array([[(i + 1) % N, (i - 1) % N, i] for i in range(N)])
    delta = np.random.default_rng(1).random(N)
    table = np.array([[delta[i], delta[i - 1], 0.7] for i in range(N)])
    weight = np.tile([1.0, 1.0, 0.0], (N, 1))
    kept = KeptPairs(torch.from_numpy(partner), tensor(table), tensor(weight))
    loss = kept_pairs(network(x, fx), tensor(SETS.C), kept)
    loss.backward()
    pairs = [(i, (i + 1) % N) for i in range(N)]
    value = np.mean([paper.pair(i, j, delta[i]) for i, j in pairs])
    np.testing.assert_allclose(loss.item(), value, **ROUNDING)
    agree(network, added([paper.pair_gradient(i, j, delta[i]) for i, j in pairs], 1 / N))


def test_gradient_of_links_is_that_of_appendix_b(case):
    network, x, fx, paper = case
    must, cannot = [(0, 1), (2, 5)], [(1, 3)]
    links, sign = torch.tensor(must + cannot), tensor([1, 1, -1])
    loss = link_penalty(network(x, fx), tensor(SETS.C + SETS.E), links, sign)
    loss.backward()
    value = sum(paper.link(*p) for p in must) + sum(2 - paper.link(*p) for p in cannot)
    np.testing.assert_allclose(loss.item(), value / 6, **ROUNDING)
    parts = [paper.link_gradient(*p) for p in must]
    parts += [[-g for g in paper.link_gradient(*p)] for p in cannot]
    agree(network, added(parts, 1 / 6))


def test_gradient_of_labels_is_that_of_appendix_c(case):
    network, x, fx, paper = case
    known = {0: 2, 3: 1, 6: 0}
    truth = np.eye(3)[list(known.values())]
    F = tensor(SETS.matrix)
    loss = label_penalty(network(x, fx), F, torch.tensor(list(known)), tensor(truth))
    loss.backward()
    value = np.mean([paper.label(i, y) for i, y in known.items()])
    np.testing.assert_allclose(loss.item(), value, **ROUNDING)
    agree(network, added([paper.label_gradient(i, y) for i, y in known.items()], 1 / 3))


def test_appendix_and_autograd_agree_with_finite_differences(case):
    network, x, fx, _ = case
    delta = tensor(np.full((N, N), 0.4))
    C, Q, F = tensor(SETS.C), tensor(SETS.C + SETS.E), tensor(SETS.matrix)
    names = [name for name, _ in network.named_parameters()]

    def whole(*parameters: torch.Tensor) -> torch.Tensor:
        m = torch.func.functional_call(network, dict(zip(names, parameters, strict=True)), (x, fx))
        links = link_penalty(m, Q, torch.tensor([[0, 1], [2, 3]]), tensor([1, -1]))
        labels = label_penalty(m, F, torch.tensor([4, 5]), tensor(np.eye(3)[[0, 2]]))
        return all_pairs(m, C, delta) + links + labels

    start = tuple(p.detach().clone().requires_grad_() for p in network.parameters())
    assert torch.autograd.gradcheck(whole, start, eps=1e-6, atol=1e-8, rtol=1e-6)


def test_the_l2_penalty_is_the_mean_square_of_each_layer(case):
    network, _, _, paper = case
    expected = 0.5 * ((paper.V**2).mean() + (paper.W**2).mean())
    np.testing.assert_allclose(network.penalty().item(), expected, **ROUNDING)


def test_delta_is_95_hundredths_at_d0():
    np.testing.assert_allclose(transformed(tensor([0.0, 9.0]), 3.0).numpy(), [0, 0.95], **ROUNDING)


# ---------------------------------------------------------------------- R's evclust
@pytest.fixture(scope="module")
def r(shared):
    with gzip.open(shared / "reference" / "nnevclus_fourclass.json.gz") as file:
        values = json.load(file)
    X = pd.read_csv(shared / "data" / "fourclass.csv")[["x1", "x2"]].to_numpy()
    values["X"] = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return values


FOUR = FocalSets.pairs(4)


def r_network(r, hidden: tuple[int, ...], weights: list, gate: bool) -> Network:
    network = Network(layers((2, *hidden)), hidden[-1], len(FOUR), gate).double()
    put(network, [np.array(w) for w in weights], np.array(r["beta"]) if gate else None)
    return network


def r_pairs(r) -> KeptPairs:
    """R's partners are not symmetric: each pair stands in both rows, with half the weight."""
    J, D = np.array(r["J"]) - 1, np.array(r["D_raw"])
    n = len(J)
    delta = transformed(tensor(D).square(), r["d0"]).numpy()
    rows = [[] for _ in range(n)]
    for i in range(n):
        for j, value in zip(J[i], delta[i], strict=True):
            rows[i].append((j, value))
            rows[j].append((i, value))
    width = max(map(len, rows))
    partner, table, weight = np.zeros((n, width), int), np.zeros((n, width)), np.zeros((n, width))
    for i, row in enumerate(rows):
        partner[i, : len(row)] = [j for j, _ in row]
        table[i, : len(row)] = [value for _, value in row]
        weight[i, : len(row)] = 1
    return KeptPairs(torch.from_numpy(partner), tensor(table), tensor(weight))


def r_gradient(network: Network, r_beta: bool) -> np.ndarray:
    """R's order: column by column of each layer, then beta."""
    parts = [g.ravel(order="F") for g in gradients(network)]
    return np.concatenate([*parts, network.beta.grad.numpy() if r_beta else np.zeros(2)])


@pytest.mark.parametrize(
    "name", ["plain", "fhat", "fhat_lambda0.1", "semi_nu0.5", "pairwise_rho0.5"]
)
def test_loss_and_gradient_are_those_of_r(r, name):
    wanted, gate = r["one_layer"][name], name != "plain"
    network = r_network(r, (8,), [r["V"], r["W"]], gate)
    m = network(tensor(r["X"]), tensor(np.ravel(r["fhat"])))
    loss = kept_pairs(m, tensor(FOUR.C), r_pairs(r))
    if "lambda" in name:
        loss = loss + 0.1 * network.penalty()
    elif "semi" in name:
        # R takes the mean over clusters, eq. (21) the sum.
        loss = 0.5 * loss + 0.5 / 4 * r_labels(r, m)
    elif "pairwise" in name:
        loss = loss + 0.5 * r_links(r, m)
    loss.backward()
    np.testing.assert_allclose(loss.item(), wanted["fun"], **REFERENCE)
    np.testing.assert_allclose(r_gradient(network, gate), np.ravel(wanted["grad"]), **REFERENCE)


def r_labels(r, m: torch.Tensor) -> torch.Tensor:
    truth = np.eye(4)[np.array(r["y_Is"]) - 1]
    return label_penalty(m, tensor(FOUR.matrix), torch.tensor(r["Is"]) - 1, tensor(truth))


def r_links(r, m: torch.Tensor) -> torch.Tensor:
    links = torch.tensor(r["ML"] + r["CL"]) - 1
    sign = tensor(np.repeat([1, -1], [len(r["ML"]), len(r["CL"])]))
    return link_penalty(m, tensor(FOUR.C + FOUR.E), links, sign)


def test_two_layers_with_everything_are_those_of_r(r):
    wanted = r["two_layer"]
    network = r_network(r, tuple(wanted["n_H"]), [wanted["U"], wanted["V"], wanted["W"]], True)
    m = network(tensor(r["X"]), tensor(np.ravel(r["fhat"])))
    loss = (1 - wanted["nu"]) * kept_pairs(m, tensor(FOUR.C), r_pairs(r))
    loss = loss + wanted["nu"] / 4 * r_labels(r, m) + wanted["rho"] * r_links(r, m)
    loss = loss + wanted["lambda"] * network.penalty()
    loss.backward()
    np.testing.assert_allclose(loss.item(), wanted["fun"], **REFERENCE)
    np.testing.assert_allclose(r_gradient(network, True), np.ravel(wanted["grad"]), **REFERENCE)


def test_the_loss_of_a_mini_batch_is_that_of_r(r):
    wanted = r["minibatch_part1"]
    rows = np.array(wanted["rows"]) - 1
    network = r_network(r, (8,), [r["V"], r["W"]], True)
    m = network(tensor(r["X"][rows]), tensor(np.ravel(r["fhat"])[rows]))
    loss = all_pairs(m, tensor(FOUR.C), tensor(wanted["D_norm"]))
    loss.backward()
    np.testing.assert_allclose(loss.item(), wanted["fun"], **REFERENCE)
    np.testing.assert_allclose(r_gradient(network, True), np.ravel(wanted["grad"]), **REFERENCE)


def test_predictions_of_a_trained_network_are_those_of_r(r):
    run = r["training"]
    network = r_network(r, (8,), [run["V"], run["W"]], False)
    with torch.no_grad():
        mass = network(tensor(r["X"])).numpy()
        new = network(tensor(run["predict"]["newx"])).numpy()
    np.testing.assert_allclose(mass, np.array(run["mass"]), **REFERENCE)
    np.testing.assert_allclose(new, np.array(run["predict"]["mass"]), **REFERENCE)


def test_the_gate_shuts_where_the_svm_says_outside():
    fx, beta = tensor([-30.0, 0.0, 30.0]), tensor([-1.0, -1.0])
    shut = shut_share(fx, beta)
    m = gated(tensor([[0.1, 0.6, 0.3]] * 3), shut)
    assert m[0, 0] > 0.95
    np.testing.assert_allclose(m.sum(dim=1).numpy(), 1, **ROUNDING)
    np.testing.assert_allclose(m[2].numpy(), [0.1, 0.6, 0.3], rtol=0, atol=1e-9)
