"""Ids travel with the objects: through parts, views, stores and growth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evdist import ECM, CredalPartition, FocalSets
from evdist.partition.ids import ids_of
from evdist.stores.encoding import StoreError

FOCAL = FocalSets.simple(2)
MASS = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0.25, 0.25, 0.5]])


@pytest.fixture(params=[["a", "b", "c", "d"], [10, 20, 30, 40]], ids=["text", "numbers"])
def named(request) -> CredalPartition:
    return CredalPartition(MASS, FOCAL, request.param)


def test_parts_keep_them(named):
    first, second, third, fourth = named.ids
    assert named[1:3].ids.tolist() == [second, third]
    assert named[2].ids.tolist() == [third]
    assert named[[3, 0]].ids.tolist() == [fourth, first]
    assert named[np.array([True, False, False, True])].ids.tolist() == [first, fourth]
    assert named.relabel([1, 0]).ids.tolist() == named.ids.tolist()
    assert named.project(FocalSets.of([(0,), (1,), (0, 1)], 2)).ids is not None


@pytest.mark.parametrize("name", ["q.npz", "q.zarr"])
def test_stores_keep_them(named, name, tmp_path):
    named.save(tmp_path / name)
    found = CredalPartition.load(tmp_path / name)
    assert found == named and found.ids.tolist() == named.ids.tolist()
    assert found.in_memory().ids.tolist() == named.ids.tolist()


def test_objects_are_found_by_them(named):
    assert [named.row(name) for name in named.ids] == [0, 1, 2, 3]
    with pytest.raises(KeyError, match="No object has the id 'z'"):
        named.row("z")
    assert CredalPartition(MASS, FOCAL).row(2) == 2
    with pytest.raises(KeyError, match=r"rows are 0\.\.3"):
        CredalPartition(MASS, FOCAL).row("a")


def test_one_for_each_object():
    with pytest.raises(ValueError, match=r"each of the 4 objects, got shape \(3,\)"):
        CredalPartition(MASS, FOCAL, ["a", "b", "c"])


def test_a_frame_that_only_counts_has_none():
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    assert ids_of(frame) is None
    assert ids_of(frame.iloc[1:]).tolist() == [1], "a part of a frame remembers where it was"
    assert ids_of(frame.to_numpy()) is None


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2024-01-01", periods=4),
        pd.MultiIndex.from_product([["a", "b"], [1, 2]]),
        pd.Index([1.5, 2.5, 3.5, 4.5]),
    ],
    ids=["dates", "levels", "fractions"],
)
def test_any_index_joins_and_is_stored_as_text(index, tmp_path):
    partition = CredalPartition(MASS, FOCAL, ids_of(pd.DataFrame({"x": range(4)}, index=index)))
    assert partition.to_frame().index.equals(index)
    partition.save(tmp_path / "q.zarr")
    assert all(isinstance(name, str) for name in CredalPartition.load(tmp_path / "q.zarr").ids)
    partition.save(tmp_path / "q.csv")
    assert len(pd.read_csv(tmp_path / "q.csv")) == 4


def test_a_fitted_model_keeps_them_and_grows(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 2)), index=[f"o{i}" for i in range(30)])
    model = ECM(2, random_state=0).fit(X)
    model.save(tmp_path / "m")
    loaded = ECM.load(tmp_path / "m").append(X.iloc[:2].set_axis(["n0", "n1"]))
    assert loaded.credal_partition_.ids[-3:].tolist() == ["o29", "n0", "n1"]
    assert ECM.load(tmp_path / "m").credal_partition_.ids[-1] == "n1"
    with pytest.raises(ValueError, match="the new ones have none"):
        model.append(X.to_numpy()[:2])
    assert model.fit(X.to_numpy()).credal_partition_.ids is None


class TestTables:
    def test_are_not_loaded(self, named, tmp_path):
        named.save(tmp_path / "q.csv")
        with pytest.raises(StoreError, match="is a table"):
            CredalPartition.load(tmp_path / "q.csv")

    def test_no_file_is_made_that_is_not_what_its_name_says(self, named, tmp_path):
        with pytest.raises(ValueError, match=r"not saved as \.xlsx"):
            named.save(tmp_path / "q.xlsx")
        assert list(tmp_path.iterdir()) == []

    def test_without_ids_objects_are_their_rows(self, tmp_path):
        CredalPartition(MASS, FOCAL).save(tmp_path / "q.csv")
        assert pd.read_csv(tmp_path / "q.csv")["id"].tolist() == [0, 1, 2, 3]

    def test_of_very_many_clusters_say_nothing_of_each(self, tmp_path):
        partition = CredalPartition.from_labels(np.arange(300))
        assert list(partition.to_frame().columns)[-1] == "empty"

    def test_of_no_objects(self, tmp_path):
        none = CredalPartition(MASS[:0], FOCAL)
        assert len(none.to_frame()) == 0
        none.save(tmp_path / "none.parquet")
        assert len(pd.read_parquet(tmp_path / "none.parquet")) == 0


def test_outliers_may_have_a_label_of_their_own():
    partition = CredalPartition(MASS, FOCAL)
    assert partition.labels().tolist() == [0, 1, 0, 0]
    assert partition.labels(outlier=-1).tolist() == [0, 1, -1, 0]
    with pytest.raises(ValueError, match="must not be the number of a cluster"):
        partition.labels(outlier=1)


def test_probabilities_sum_to_one():
    partition = CredalPartition(MASS, FOCAL)
    np.testing.assert_allclose(partition.probability.sum(axis=1), 1)
    np.testing.assert_allclose(partition.probability[2], 0.5)
