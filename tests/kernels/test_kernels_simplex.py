"""The simplex program: minimise 1/2 m'Sm - u'm over m >= 0, sum(m) = 1."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernels.kernel_reference import kkt_residual
from numpy.typing import NDArray
from scipy import optimize

from evdist.kernels.simplex import solve_simplex


def cost(S: NDArray, u: NDArray, m: NDArray) -> float:
    return float(0.5 * m @ S @ m - u @ m)


def starts(f: int, rng: np.random.Generator) -> list[NDArray]:
    """A vertex, the centre, a random point, a point on a random face."""
    face = rng.dirichlet(np.ones(f)) * (rng.random(f) < 0.5)
    face[rng.integers(f)] += 0.1
    return [
        np.eye(f)[rng.integers(f)],
        np.full(f, 1 / f),
        rng.dirichlet(np.ones(f)),
        face / face.sum(),
    ]


# ---------------------------------------------------------------------- against others
def test_agrees_with_quadprog_on_fifty_programs(shared):
    programs = json.loads((shared / "reference" / "simplex_qp.json").read_text())["qps"]
    assert len(programs) == 50
    rng = np.random.default_rng(0)
    for program in programs:
        S, u = np.array(program["Sigma"], float), np.array(program["u"], float)
        for start in starts(len(u), rng):
            m = solve_simplex(S, u, start)
            np.testing.assert_allclose(m, program["m"], rtol=0, atol=1e-8)
            assert kkt_residual(S, u, m) <= 1e-10


@pytest.mark.parametrize("f", [2, 5, 12, 30])
def test_agrees_with_non_negative_least_squares(f):
    # On the simplex A m - b = (A - b 1')m, and the smallest |B m| there is, up to its length,
    # the non-negative least-squares solution of [B; 1'] y = [0; 1].
    rng = np.random.default_rng(f)
    for _ in range(20):
        A, b = rng.random((f + 10, f)), rng.random(f + 10)
        stacked = np.vstack([A - b[:, None], np.ones(f)])
        y, _ = optimize.nnls(stacked, np.append(np.zeros(f + 10), 1.0))
        m = solve_simplex(A.T @ A, A.T @ b, np.full(f, 1 / f))
        np.testing.assert_allclose(m, y / y.sum(), rtol=0, atol=1e-9)


def test_is_no_worse_than_a_general_purpose_solver_on_singular_programs():
    rng = np.random.default_rng(7)
    for _ in range(15):
        f = int(rng.integers(3, 9))
        A = rng.normal(size=(2, f))
        S, u = A.T @ A, rng.normal(size=f)
        found = optimize.minimize(
            lambda m, S=S, u=u: cost(S, u, m),
            np.full(f, 1 / f),
            jac=lambda m, S=S, u=u: S @ m - u,
            method="SLSQP",
            bounds=[(0, 1)] * f,
            constraints={"type": "eq", "fun": lambda m: m.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        m = solve_simplex(S, u, np.full(f, 1 / f))
        assert cost(S, u, m) <= found.fun + 1e-9
        assert cost(S, u, m) >= found.fun - 1e-6


# ---------------------------------------------------------------------- optimality conditions
def random_program(kind: str, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Data terms and a target; `u` lies in the range of S only when nothing else pulls at m."""
    f = int(rng.integers(2, 21))
    rank = int(rng.integers(1, f)) if kind == "rank deficient" else int(rng.integers(f, 3 * f))
    A = rng.random((rank, f))
    if kind == "duplicate columns":
        A[:, rng.integers(f)] = A[:, rng.integers(f)]
        A[:, rng.integers(f)] = A[:, rng.integers(f)]
    elif kind == "zero columns":
        A[:, rng.random(f) < 0.3] = 0
    elif kind == "vertices":
        A = (A < 0.5).astype(float)
    elif kind == "signs":
        A = A - 0.5
    elif kind == "rank one":
        A = rng.normal(size=(1, f))
    S, u = A.T @ A, A.T @ rng.random(len(A))
    if rng.random() < 0.5:
        u = u + rng.normal(size=f) * rng.choice([0.01, 1.0, 10.0])
    return S, u


KINDS = [
    "regular",
    "rank deficient",
    "rank one",
    "duplicate columns",
    "zero columns",
    "vertices",
    "signs",
]


@pytest.mark.parametrize("kind", KINDS)
def test_optimality_conditions_hold_to_1e_10(kind):
    # Seven kinds, 360 programs each, four starts: 10,080 solutions.
    rng = np.random.default_rng(KINDS.index(kind))
    worst = 0.0
    for _ in range(360):
        S, u = random_program(kind, rng)
        for start in starts(len(u), rng):
            worst = max(worst, kkt_residual(S, u, solve_simplex(S, u, start)))
    assert worst <= 1e-10


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_a_linear_program_goes_to_its_best_vertex(unit):
    u = unit * np.array([0.3, 2.0, -1.0, 1.999])
    for start in starts(4, np.random.default_rng(0)):
        assert solve_simplex(np.zeros((4, 4)), u, start).tolist() == [0, 1, 0, 0]


def test_a_flat_program_leaves_the_start_where_it_is():
    start = np.array([0.5, 0.25, 0.25])
    m = solve_simplex(np.zeros((3, 3)), np.zeros(3), start)
    np.testing.assert_array_equal(m, start)


def test_a_null_direction_outside_the_range_of_S_does_not_spoil_the_step():
    # S is of rank one and u is not in its range, as with a link penalty; the minimiser of this
    # one-dimensional program is (7 / 722.5, ...).
    a = np.array([0.23, -0.62])
    m = solve_simplex(np.outer(a, a), np.array([-2.32, -1.8]), np.array([0.5, 0.5]))
    np.testing.assert_allclose(m, [7 / 722.5, 1 - 7 / 722.5], rtol=1e-12)


def test_more_components_than_rounds_may_enter():
    # full(8) has 256 focal sets; from a vertex all of them enter one by one.
    f = 256
    rng = np.random.default_rng(1)
    A = rng.normal(size=(2 * f, f))
    S = A.T @ A / f
    inside = rng.dirichlet(np.full(f, 50.0))
    m = solve_simplex(S, S @ inside, np.eye(f)[0])
    np.testing.assert_allclose(m, inside, rtol=0, atol=1e-10)


def test_one_component_has_all_the_mass():
    assert solve_simplex(np.array([[2.0]]), np.array([5.0]), np.array([1.0])).tolist() == [1.0]


# ---------------------------------------------------------------------- laws
@st.composite
def programs(draw: st.DrawFn) -> tuple[NDArray, NDArray, NDArray]:
    """Small integers: ties, repeated and zero columns come often."""
    f = draw(st.integers(1, 6))
    rank = draw(st.integers(1, 6))
    entries = st.lists(st.integers(-3, 3), min_size=f, max_size=f)
    A = np.array(draw(st.lists(entries, min_size=rank, max_size=rank)), float)
    u = np.array(draw(entries), float)
    start = np.array(draw(st.lists(st.integers(0, 4), min_size=f, max_size=f)), float)
    start[draw(st.integers(0, f - 1))] += 1
    return A.T @ A, u, start / start.sum()


@given(programs())
def test_never_worse_than_the_start_and_optimal(program):
    S, u, start = program
    m = solve_simplex(S, u, start)
    scale = max(np.abs(S).max(), np.abs(u).max(), 1.0)
    assert cost(S, u, m) <= cost(S, u, start) + 1e-14 * scale
    assert kkt_residual(S, u, m) <= 1e-10


@given(programs(), st.integers(-40, 40))
def test_scaling_by_a_power_of_two_changes_no_bit(program, power):
    S, u, start = program
    scaled = solve_simplex(np.ldexp(S, power), np.ldexp(u, power), start)
    np.testing.assert_array_equal(scaled, solve_simplex(S, u, start))


@given(programs(), st.floats(1e-12, 1e12))
def test_scaling_by_anything_keeps_the_optimum(program, factor):
    S, u, start = program
    assert (
        kkt_residual(factor * S, factor * u, solve_simplex(factor * S, factor * u, start)) <= 1e-10
    )


@given(programs(), st.integers(-5, 5))
def test_a_constant_added_to_u_changes_nothing(program, shift):
    # 1'm is fixed, so u + a 1 moves the cost of every point alike.
    S, u, start = program
    m = solve_simplex(S, u + shift, start)
    assert kkt_residual(S, u, m) <= 1e-10


def test_inputs_are_left_untouched():
    rng = np.random.default_rng(2)
    A = rng.random((9, 5))
    S, u, start = A.T @ A, rng.random(5), np.full(5, 0.2)
    kept = S.copy(), u.copy(), start.copy()
    solve_simplex(S, u, start)
    for now, before in zip((S, u, start), kept, strict=True):
        np.testing.assert_array_equal(now, before)
