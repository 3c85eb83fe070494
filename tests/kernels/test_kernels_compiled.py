"""The first fit says that it compiles; the next has nothing to say."""

from __future__ import annotations

import importlib.util
import logging
import sys

import numpy as np
import pytest

from evdist import EVCLUS
from evdist.estimators import callbacks
from evdist.kernels.compiled import is_compiled

MODULE = """
from evdist.kernels.jit import njit

@njit
def twice(x):
    return 2 * x
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A function that nothing has compiled yet, in a module of its own."""
    path = tmp_path / "evdist_fresh_kernel.py"
    path.write_text(MODULE)

    def fresh():
        spec = importlib.util.spec_from_file_location(path.stem, path)
        found = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, path.stem, found)
        spec.loader.exec_module(found)
        return found

    return fresh


def test_a_function_is_compiled_once_it_was_called_also_for_the_next_process(module):
    first = module()
    assert not is_compiled(first.twice)
    assert first.twice(2) == 4
    assert is_compiled(first.twice), "in memory"
    assert is_compiled(module().twice), "on disk"


def test_what_the_kernels_did_not_compile_counts_as_compiled():
    assert is_compiled(len)


X = np.r_[np.zeros((20, 2)), np.ones((20, 2))] + np.random.default_rng(0).normal(0, 0.1, (40, 2))


def fit(**options):
    return EVCLUS(
        2, init="random", d0=1.0, max_iter=2, tol=10.0, **{"metric": "euclidean", **options}
    ).fit(X)


def test_the_first_fit_says_so_to_its_listeners(monkeypatch):
    monkeypatch.setattr(callbacks, "is_compiled", lambda function: False)
    heard = []
    fit(callbacks=[heard.append])
    assert heard[0].stage == "compiling once, about 12 s"


def test_many_clusters_have_kernels_of_their_own(monkeypatch):
    monkeypatch.setattr(callbacks, "is_compiled", lambda f: f.py_func.__name__ == "update_sparse")
    rng = np.random.default_rng(0)
    Z = (9 * rng.normal(size=(30, 4)))[np.arange(600) % 30] + rng.normal(size=(600, 4))
    heard = []
    EVCLUS(
        30, metric="euclidean", random_state=0, max_iter=1, tol=10.0, callbacks=[heard.append]
    ).fit(Z)
    assert not any("compiling" in news.stage for news in heard)
    monkeypatch.setattr(callbacks, "is_compiled", lambda f: f.py_func.__name__ == "update_rows")
    EVCLUS(
        30, metric="euclidean", random_state=0, max_iter=1, tol=10.0, callbacks=[heard.append]
    ).fit(Z)
    assert sum(news.stage == "compiling once, about 20 s" for news in heard) == 1


def test_without_listeners_it_is_logged_and_the_next_fit_is_silent(monkeypatch, caplog):
    with caplog.at_level(logging.WARNING, "evdist"):
        fit()
        assert caplog.messages == []
        monkeypatch.setattr(callbacks, "is_compiled", lambda function: False)
        fit()
    said = "evdist: compiling once, about 12 s; the next fit starts at once"
    assert caplog.messages == [said]
