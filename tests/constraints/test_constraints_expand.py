"""Constraint expansion: k-CEVCLUS, section 3.2 and algorithm 2."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris
from sklearn.neighbors import NearestNeighbors

from evdist import CECM, EVCLUS
from evdist.constraints import check_links, expand_constraints, random_links


def as_set(pairs: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(sorted(p)) for p in np.asarray(pairs).tolist()}


def slow_expansion(D: np.ndarray, ml: list, cl: list, K: int) -> tuple[list, list]:
    """Algorithm 2, word for word, from a full matrix."""
    n = len(D)

    def neighbourhood(i: int) -> list[int]:
        others = [j for j in range(n) if j != i]
        return [i, *sorted(others, key=lambda j: (D[i, j], j))[:K]]

    new = {"ml": list(ml), "cl": list(cl)}
    for kind, links in (("ml", ml), ("cl", cl)):
        for i, j in links:
            linked = as_set(new["ml"] + new["cl"])
            candidates = sorted(
                (D[i, r] + D[j, s], r, s)
                for r in neighbourhood(i)
                for s in neighbourhood(j)
                if r != s and tuple(sorted((r, s))) not in linked
            )
            best: list[tuple[int, int]] = []
            for _, r, s in candidates:
                if len(best) < K and tuple(sorted((r, s))) not in as_set(best):
                    best.append((r, s))
            new[kind] += best
    return new["ml"], new["cl"]


@pytest.fixture(scope="module")
def reference(shared: Path) -> dict:
    return json.loads((shared / "reference" / "expandlink.json").read_text())


class TestAgainstR:
    @pytest.mark.parametrize("given_as", ["attributes", "matrix", "neighbours"])
    def test_the_same_links(self, reference: dict, given_as: str) -> None:
        ml, cl = np.array(reference["ML"]) - 1, np.array(reference["CL"]) - 1
        if given_as == "attributes":
            got = expand_constraints(np.array(reference["x"]), ml, cl, 4, consistent=False)
        elif given_as == "matrix":
            got = expand_constraints(
                np.array(reference["D"]), ml, cl, 4, metric="precomputed", consistent=False
            )
        else:
            index = np.array(reference["nn_index"]) - 1
            neighbours = (index, np.array(reference["nn_dist"]))
            got = expand_constraints(neighbours, ml, cl, 4, consistent=False)
        assert as_set(got[0]) == as_set(np.array(reference["ML_expanded"]) - 1)
        assert as_set(got[1]) == as_set(np.array(reference["CL_expanded"]) - 1)

    def test_algorithm_2_may_contradict_through_third_objects(self, reference: dict) -> None:
        ml, cl = np.array(reference["ML"]) - 1, np.array(reference["CL"]) - 1
        x = np.array(reference["x"])
        check_links(ml, cl, len(x))
        with pytest.raises(ValueError, match=r"\(2, 8\).*joins the two: 2 - [0-9]+ - 8"):
            check_links(*expand_constraints(x, ml, cl, 4, consistent=False), len(x))
        check_links(*expand_constraints(x, ml, cl, 4), len(x))


class TestTheAlgorithm:
    #   0 -- 1 -- 2          10 -- 11.5 -- 13.5     positions on a line
    X = np.array([[0.0], [1.0], [3.0], [10.0], [11.5], [13.5]])

    def test_figure_1_two_new_links_around_one(self) -> None:
        ml, cl = expand_constraints(self.X, None, [(0, 3)], 2)
        assert ml.shape == (0, 2)
        # Delta: (1, 3) 1, (0, 4) 1.5, (1, 4) 2.5, ...
        assert cl.tolist() == [[0, 3], [1, 3], [0, 4]]

    def test_what_has_become_a_must_link_is_no_cannot_link(self) -> None:
        ml, cl = expand_constraints(self.X, [(0, 2)], [(1, 3)], 2)
        # N(0) = {0, 1, 2}, N(2) = {2, 1, 0}: (0, 1) and (1, 2) lie nearest.
        assert as_set(ml) == {(0, 2), (0, 1), (1, 2)}
        assert not as_set(ml) & as_set(cl)

    def test_ties_go_to_the_lower_object(self) -> None:
        X = np.zeros((9, 2))
        ml, _ = expand_constraints(X, [(7, 8)], None, 2)
        # N(7) = {7, 0, 1}, N(8) = {8, 0, 1}, all Delta are 0: r in increasing order, then s.
        assert ml.tolist() == [[7, 8], [0, 1], [0, 8]]

    @pytest.mark.parametrize("d", [2, 40])  # scikit-learn has a search of its own for many columns
    def test_ties_beyond_the_last_neighbour_too(self, d: int) -> None:
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, size=(200, d)).astype(float)
        D = cdist(X, X, "cityblock")
        ml, cl = expand_constraints(X, [(150, 160)], [(170, 180)], 3, metric="cityblock")
        expected = slow_expansion(D, [(150, 160)], [(170, 180)], 3)
        assert [tuple(p) for p in ml] == expected[0]
        assert [tuple(p) for p in cl] == expected[1]

    def test_zero_neighbours_add_nothing(self) -> None:
        ml, cl = expand_constraints(self.X, [(0, 1), (1, 0)], [(0, 3)], 0)
        assert (ml.tolist(), cl.tolist()) == ([[0, 1]], [[0, 3]])

    def test_a_small_neighbourhood_gives_what_it_has(self) -> None:
        ml, _ = expand_constraints(self.X[:3], [(0, 1)], None, 2)
        assert as_set(ml) == {(0, 1), (0, 2), (1, 2)}

    @given(data=st.data(), n=st.integers(4, 12), K=st.integers(1, 3))
    def test_it_is_algorithm_2_for_all_three_forms_of_input(
        self, data: st.DataObject, n: int, K: int
    ) -> None:
        # Coordinates on a coarse grid: many ties.
        X = data.draw(hnp.arrays(float, (n, 2), elements=st.integers(0, 3).map(float)))
        pairs = [(i, j) for i in range(n) for j in range(n) if i < j]
        chosen = data.draw(st.lists(st.sampled_from(pairs), max_size=5, unique=True))
        y = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
        ml = [p for p in chosen if y[p[0]] == y[p[1]]]
        cl = [p for p in chosen if y[p[0]] != y[p[1]]]
        D = cdist(X, X)
        expected = slow_expansion(D, ml, cl, K)
        order = np.argsort(D, axis=1, kind="stable")
        neighbours = (order, np.take_along_axis(D, order, axis=1))
        for source, metric in [(X, "euclidean"), (D, "precomputed"), (neighbours, "euclidean")]:
            got = expand_constraints(source, ml, cl, K, metric=metric, consistent=False)
            assert [tuple(p) for p in got[0]] == expected[0]
            assert [tuple(p) for p in got[1]] == expected[1]

    @pytest.mark.parametrize(
        "metric", ["cityblock", "sqeuclidean", "cosine", "correlation", "chebyshev", "mahalanobis"]
    )
    def test_the_metric_is_the_users(self, metric: str) -> None:
        X = np.random.default_rng(0).normal(size=(60, 4)) * [1, 5, 1, 1] + 1
        expected = slow_expansion(cdist(X, X, metric), [(0, 1)], [(2, 3)], 3)
        ml, cl = expand_constraints(X, [(0, 1)], [(2, 3)], 3, metric=metric)
        assert as_set(ml) == as_set(expected[0])
        assert as_set(cl) == as_set(expected[1])

    def test_a_callable_metric(self) -> None:
        got = expand_constraints(
            self.X, None, [(0, 3)], 2, metric=lambda a, b: float(np.abs(a - b).sum())
        )
        assert got[1].tolist() == [[0, 3], [1, 3], [0, 4]]

    def test_only_linked_objects_are_asked_about(self, monkeypatch: pytest.MonkeyPatch) -> None:
        queries = []

        class Counting(NearestNeighbors):
            def kneighbors(self, X, n_neighbors):
                queries.append(X.shape[0])
                return super().kneighbors(X, n_neighbors)

        monkeypatch.setattr("sklearn.neighbors.NearestNeighbors", Counting)
        X = np.random.default_rng(0).normal(size=(50_000, 3))
        ml, cl = expand_constraints(X, [(0, 1), (1, 2)], [(2, 3)], 5)
        assert queries == [4]
        assert (len(ml), len(cl)) == (12, 6)

    def test_an_asymmetric_matrix_counts_as_the_mean_of_both_sides(self) -> None:
        D = np.triu(2 * cdist(self.X, self.X))
        got = expand_constraints(D, None, [(0, 3)], 2, metric="precomputed")
        assert got[1].tolist() == [[0, 3], [1, 3], [0, 4]]


class TestWhatIsAddedIsTaken:
    """Guesses that contradict other links are passed over."""

    @given(data=st.data(), n=st.integers(4, 14), K=st.integers(1, 4))
    def test_no_new_link_contradicts(self, data: st.DataObject, n: int, K: int) -> None:
        X = data.draw(hnp.arrays(float, (n, 2), elements=st.integers(0, 3).map(float)))
        y = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
        pairs = [(i, j) for i in range(n) for j in range(n) if i < j]
        chosen = data.draw(st.lists(st.sampled_from(pairs), max_size=7, unique=True))
        ml = [p for p in chosen if y[p[0]] == y[p[1]]]
        cl = [p for p in chosen if y[p[0]] != y[p[1]]]
        K = min(K, n - 1)
        must, cannot = expand_constraints(X, ml, cl, K)
        checked = check_links(must, cannot, n)
        assert [len(links) for links in checked] == [len(must), len(cannot)]
        assert must.tolist()[: len(ml)] == [list(p) for p in ml]
        assert cannot.tolist()[: len(cl)] == [list(p) for p in cl]
        letter = expand_constraints(X, ml, cl, K, consistent=False)
        try:
            check_links(*letter, n)
        except ValueError:
            return
        # Where algorithm 2 does not contradict itself, this is algorithm 2.
        assert [must.tolist(), cannot.tolist()] == [links.tolist() for links in letter]

    def test_a_contradicting_guess_makes_room_for_the_next(self) -> None:
        X = np.array([[0.0], [1.0], [3.0], [10.0], [11.5], [13.5]])
        # (1, 3) lies nearest to the cannot-link (0, 3), but 1 - 2 - 3 are together.
        _, cl = expand_constraints(X, [(1, 2), (2, 3)], [(0, 3)], 1)
        assert as_set(cl) == {(0, 3), (0, 4)}

    @pytest.mark.parametrize("seed", [1, 3, 5])
    def test_fifty_links_of_iris_are_taken_by_fit(self, seed: int) -> None:
        X, y = load_iris(return_X_y=True)
        given_links = random_links(y, 50, seed)
        with pytest.raises(ValueError, match="contradicts must_link"):
            check_links(*expand_constraints(X, *given_links, 5, consistent=False), len(X))
        must, cannot = expand_constraints(X, *given_links, 5)
        for model in (EVCLUS(3, metric="euclidean", random_state=0), CECM(3, random_state=0)):
            assert model.fit(X, must_link=must, cannot_link=cannot).converged_


class TestRefused:
    X = np.arange(10.0).reshape(5, 2)

    def test_links_are_checked(self) -> None:
        with pytest.raises(ValueError, match=r"must name objects 0..4"):
            expand_constraints(self.X, [(0, 5)], None, 2)

    @pytest.mark.parametrize("K", [-1, 5])
    def test_more_neighbours_than_there_are(self, K: int) -> None:
        with pytest.raises(ValueError, match=f"K must be 0 to n - 1 = 4 neighbours, got {K}"):
            expand_constraints(self.X, [(0, 1)], None, K)

    def test_a_matrix_that_is_not_square(self) -> None:
        with pytest.raises(ValueError, match=r"must be square, got shape \(5, 2\)"):
            expand_constraints(self.X, [(0, 1)], None, 2, metric="precomputed")

    def test_a_matrix_with_a_bad_entry(self) -> None:
        D = cdist(self.X, self.X)
        D[1, 3] = np.nan
        with pytest.raises(ValueError, match=r"finite and non-negative, but D\[1, 3\] = nan"):
            expand_constraints(D, [(0, 1)], None, 2, metric="precomputed")

    def test_one_axis(self) -> None:
        with pytest.raises(ValueError, match=r"two axes .*got shape \(5,\)"):
            expand_constraints(self.X[:, 0], [(0, 1)], None, 2)

    @pytest.mark.parametrize(
        ("neighbours", "message"),
        [
            ((np.zeros((5, 2), int),), r"a tuple \(index, distance\), got 1 arrays"),
            ((np.zeros((5, 2), int), np.zeros((5, 3))), r"shapes \(5, 2\) \(int64\) and \(5, 3\)"),
            ((np.zeros((5, 2)), np.zeros((5, 2))), r"\(float64\)"),
            ((np.full((5, 2), 5), np.zeros((5, 2))), "neighbour 0 of object 0 is 5 at 0.0"),
            ((np.full((5, 2), 3), np.full((5, 2), -1.0)), "neighbour 0 of object 0 is 3 at -1.0"),
            ((np.zeros((5, 2), int), np.zeros((5, 2))), "Object 0 has a link and 0 neighbours"),
        ],
    )
    def test_neighbours_that_are_none(self, neighbours: tuple, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            expand_constraints(neighbours, [(0, 1)], None, 2)
