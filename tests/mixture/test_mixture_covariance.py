"""The fourteen covariance models: structure, number of parameters, and the maximum itself."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.linalg import expm

from evdist.mixture import MODELS
from evdist.mixture.covariance import Spread, count_parameters, estimate, simplest

B, C, D = 2, 3, 4


@pytest.fixture(scope="module")
def scatter() -> tuple[np.ndarray, np.ndarray]:
    """Sizes (B, c) and scatter matrices (B, c, d, d) of components that differ in every respect."""
    rng = np.random.default_rng(0)
    sizes = rng.uniform(20, 80, (B, C))
    roots = rng.normal(size=(B, C, D, D)) * rng.uniform(0.2, 2, (B, C, 1, 1))
    return sizes, sizes[..., None, None] * (roots @ roots.swapaxes(-1, -2))


def criterion(spread: Spread, sizes, W) -> np.ndarray:
    """sum_k n_k log|Sigma_k| + tr(Sigma_k^-1 W_k): falls as the likelihood rises."""
    Sigma = (spread.D * (spread.volumes[..., None] * spread.shapes)[..., None, :]) @ np.swapaxes(
        spread.D, -1, -2
    )
    trace = np.trace(np.linalg.solve(Sigma, W), axis1=-2, axis2=-1)
    return (sizes * np.linalg.slogdet(Sigma)[1] + trace).sum(axis=-1)


def fitted(model: str, sizes, W) -> Spread:
    spread, collapsed = estimate(model, sizes, W, np.full(B, 1e-9))
    assert not collapsed.any()
    for _ in range(300):  # the iterative models go on from where they were
        spread, _ = estimate(model, sizes, W, np.full(B, 1e-9), spread)
    return spread


@pytest.mark.parametrize("model", MODELS)
def test_what_is_equal_is_equal_and_what_is_the_identity_is(model, scatter):
    spread, _ = estimate(model, *scatter, np.full(B, 1e-9))
    _, shape, orientation = tuple(model)
    np.testing.assert_allclose(spread.shapes.prod(axis=-1), 1)
    np.testing.assert_allclose(
        spread.D @ spread.D.swapaxes(-1, -2), np.broadcast_to(np.eye(D), (B, C, D, D)), atol=1e-12
    )
    parts = (spread.volumes, spread.shapes, spread.D)
    for letter, value in zip(model, parts, strict=True):
        same = np.allclose(value, value[:, :1], rtol=1e-12)
        assert same == (letter in "EI")
    if shape == "I":
        np.testing.assert_allclose(spread.shapes, 1)
    if orientation == "I":
        np.testing.assert_array_equal(spread.D, np.broadcast_to(np.eye(D), (B, C, D, D)))


@pytest.mark.parametrize("model", MODELS)
def test_no_nearby_member_of_the_model_is_likelier(model, scatter):
    sizes, W = scatter
    spread = fitted(model, sizes, W)
    best = criterion(spread, sizes, W)
    number = {"E": 1, "V": C, "I": 0}
    rng = np.random.default_rng(1)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(20):
            volume, shape, turn = (
                size * rng.normal(size=(B, max(number[letter], 1), *axes)) * (number[letter] > 0)
                for letter, axes in zip(model, ((), (D,), (D, D)), strict=True)
            )
            shape = np.exp(shape - shape.mean(axis=-1, keepdims=True))
            turn = np.stack([[expm(t - t.T) for t in row] for row in turn])
            near = Spread(spread.volumes * np.exp(volume), spread.shapes * shape, turn @ spread.D)
            assert (criterion(near, sizes, W) >= best - 1e-7 * np.abs(best)).all()


@pytest.mark.parametrize(
    ("general", "special"),
    [("VII", "EII"), ("EEI", "EII"), ("VEI", "EEI"), ("EVI", "EEI"), ("VVI", "VEI"), ("VVI", "EVI"),
     ("EEE", "EEI"), ("VEE", "EEE"), ("EVE", "EEE"), ("VVE", "EVE"), ("VVE", "VEE"), ("EEV", "EEE"),
     ("VEV", "EEV"), ("EVV", "EEV"), ("EVV", "EVE"), ("VVV", "VEV"), ("VVV", "EVV"),
     ("VVV", "VVE")],
)  # fmt: skip
def test_a_model_is_at_least_as_likely_as_its_special_cases(general, special, scatter):
    wide, narrow = (criterion(fitted(m, *scatter), *scatter) for m in (general, special))
    assert (wide <= narrow + 1e-8 * np.abs(narrow)).all()


def test_the_numbers_of_parameters_are_mclusts(shared):
    models = json.loads((shared / "reference/gmm_iris.json").read_text())["models"]
    assert {m: count_parameters(m, 3, 4) for m in MODELS} == {m: models[m]["df"] for m in MODELS}


def test_models_that_are_the_same_have_one_name():
    assert [simplest(m, 3, 2) for m in MODELS] == list(MODELS)
    assert {simplest(m, 1, 2) for m in MODELS} == {"EII", "EEI", "EEE"}
    assert {simplest(m, 3, 1) for m in MODELS} == {"EII", "VII"}
    for c, d in ((1, 4), (3, 1), (1, 1)):
        assert {simplest(m, c, d) for m in MODELS} <= set(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_a_component_without_any_scatter_gets_the_floor_and_not_a_nan(model):
    sizes = np.full((1, 2), 30.0)
    W = np.stack([np.zeros((3, 3)), 30 * np.diag([1.0, 2.0, 3.0])])[None]
    spread, collapsed = estimate(model, sizes, W, np.array([1e-9]))
    for value in (spread.volumes, spread.shapes, spread.D):
        assert np.isfinite(value).all()
    assert (spread.volumes[..., None] * spread.shapes > 0).all()
    # Two components that share volume and shape share the scatter too: nothing has collapsed.
    assert collapsed.item() == (model not in ("EII", "EEI", "EEE", "EEV"))
