"""What a job can do beside clustering: predict, append, select, combine; links and weights."""

from __future__ import annotations

import json
import os

import numpy as np
import pandas as pd
import pytest
from jobs.jobs_cases import (
    PARAMETERS,
    KilledError,
    Stop,
    blobs,
    config,
    data_file,
    fitted,
    quick,
    run_and_kill,
    stages,
)
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from evdist import EVCLUS, CredalPartition
from evdist.evclus.partitions import door
from evdist.service.jobs import JobError, JobFolder, run
from evdist.stores.encoding import StoreError

NEW = blobs(240)[200:] + 0.1


def new_file(folder, X=NEW, name="new.npy") -> dict[str, str]:
    np.save(folder / name, X)
    return {"url": str(folder / name)}


def masses(result) -> np.ndarray:
    return np.asarray(result.partition.mass)


@pytest.fixture
def folder(tmp_path):
    """A folder with a finished job, `job`."""
    data_file(tmp_path)
    quick(config(tmp_path))
    return tmp_path


def ask(folder, task, name=None, **more):
    """A job on new.npy with the model of `job`."""
    values = {
        "task": task,
        "folder": str(folder / (name or task)),
        "model": str(folder / "job"),
        "data": {"url": str(folder / "new.npy")},
    }
    return {**values, **more}


class TestPredict:
    def test_places_new_objects_as_the_estimator_does(self, folder):
        new_file(folder)
        result = quick(ask(folder, "predict"))
        np.testing.assert_array_equal(masses(result), fitted().predict_mass(NEW))
        assert result.metrics["n_objects"] == 40
        assert len(masses(quick(config(folder)))) == 200, "the model's own partition stays"

    @pytest.mark.parametrize("task", ["predict", "append"])
    def test_new_objects_are_judged_at_the_level_of_the_model(self, folder, task):
        # Of few and doubtful objects a level of their own would be another.
        between = np.repeat(NEW[:1], 40, axis=0)
        result = quick(ask(folder, task, data=new_file(folder, between)))
        level = quick(config(folder)).metrics["level"]
        assert result.metrics["level"] == level
        found = result.partition.decide(level)
        assert result.metrics["n_sure"] == int(np.asarray(found.sure).sum())

    def test_objects_are_explained(self, folder):
        result = quick(config(folder))
        found = result.explain(3)
        told = result.partition.explain(3, blobs(), level=result.metrics["level"])
        assert str(found) == str(told)
        assert len(found.neighbours) == 5

    def test_clusters_are_described_and_objects_explained_in_the_units_of_the_table(self, tmp_path):
        X = blobs()
        kind = KMeans(3, n_init=1, random_state=0).fit_predict(X)
        table = pd.DataFrame({"height": 100 + X[:, 0], "weight": X[:, 1]})
        table["city"] = np.array(["Oslo", "Rome", "Lima"])[kind]
        table.loc[5, "height"] = 400.0
        table.to_csv(tmp_path / "t.csv", index=False)
        result = quick(config(tmp_path, data={"url": str(tmp_path / "t.csv"), "encode": True}))
        found = result.describe()
        # At the levels that the job decided by, which may differ by pair of clusters.
        assert found.n_sure == result.metrics["n_sure"]
        assert found.n_between == result.metrics["n_between"]
        assert json.loads((tmp_path / "job" / "clusters.json").read_text()) == found.to_json()
        assert [one["headline"] for one in result.metrics["clusters"]] == [
            card.headline for card in found
        ]
        k = int(result.partition.labels()[0])
        city = table["city"][0]
        height = next(one for one in found[k].attributes if one.name == "height")
        assert height.mean == pytest.approx(table["height"][table["city"] == city].median(), abs=2)
        assert f"city {city}" in str(found[k]) or city in str(found[k])
        why = str(result.explain(5))
        assert "height: 400, typically " in why
        assert "strange" in why
        assert result.describe(text=["word"] * 200)[0].words == ("word",)

    def test_a_single_object_is_enough(self, folder):
        result = quick(ask(folder, "predict", data=new_file(folder, NEW[:1])))
        np.testing.assert_array_equal(masses(result), fitted().predict_mass(NEW[:1]))

    def test_goes_on_after_a_stop(self, folder):
        new_file(folder)
        with pytest.raises(KilledError, match="stopped"):
            quick(ask(folder, "predict"), listen=[Stop("predict")])
        np.testing.assert_array_equal(
            masses(quick(ask(folder, "predict"))), fitted().predict_mass(NEW)
        )

    @pytest.mark.parametrize("scale", ["standard", "robust"])
    def test_on_the_scale_of_the_model(self, folder, scale):
        stretch = [1.0, 300.0]
        data_file(folder, blobs() * stretch, "wide.npy")
        wide = config(folder, "wide", data={"url": str(folder / "wide.npy"), "scale": scale})
        model = quick(wide).model()
        new_file(folder, NEW * stretch)
        result = quick(ask(folder, "predict", model=str(folder / "wide")))
        known = stages(folder / "wide")["validate"]["outputs"]["scale"]
        scaled = (NEW * stretch - known["centre"]) / known["spread"]
        np.testing.assert_array_equal(masses(result), model.predict_mass(scaled))
        if scale == "standard":
            X = StandardScaler().fit_transform(blobs() * stretch)
            labels = EVCLUS(**PARAMETERS).fit(X).labels_
            np.testing.assert_array_equal(model.labels_, labels)

    @pytest.mark.parametrize(
        ("X", "sentence"),
        [
            (np.zeros((3, 5)), "fitted to 2 columns, the new data have 5.*data.columns"),
            (np.array([[1.0, np.nan]]), r"Row 0, column 1 is missing \(NaN\)"),
        ],
    )
    def test_refuses(self, folder, X, sentence):
        with pytest.raises(JobError, match=sentence):
            quick(ask(folder, "predict", data=new_file(folder, X)))

    def test_refuses_a_scale_of_its_own(self, folder):
        data = {**new_file(folder), "scale": "standard"}
        with pytest.raises(JobError, match=r"data.scale is that of the model; leave it out"):
            quick(ask(folder, "predict", data=data))

    def test_needs_a_finished_model(self, folder):
        new_file(folder)
        (folder / "empty").mkdir()
        with pytest.raises(JobError, match=r"no finished model at .*empty"):
            quick(ask(folder, "predict", model=str(folder / "empty")))


class TestAppend:
    def grown(self, folder) -> np.ndarray:
        return np.asarray(CredalPartition.load(folder / "job/masses.zarr").mass)

    @pytest.fixture
    def wanted(self) -> np.ndarray:
        model = fitted()
        return np.concatenate([np.asarray(model.credal_partition_.mass), model.predict_mass(NEW)])

    def test_adds_to_the_partition_of_the_model(self, folder, wanted):
        new_file(folder)
        result = quick(ask(folder, "append"))
        np.testing.assert_array_equal(self.grown(folder), wanted)
        np.testing.assert_array_equal(masses(result), wanted[200:])
        assert result.metrics["n_objects"] == 40

    def test_once_however_often_it_is_called(self, folder, wanted):
        new_file(folder)
        for _ in range(3):
            quick(ask(folder, "append"))
        np.testing.assert_array_equal(self.grown(folder), wanted)

    @pytest.mark.parametrize("stage", ["load", "validate", "append", "summarise"])
    def test_once_wherever_it_is_stopped(self, folder, wanted, stage):
        new_file(folder)
        for _ in range(2):
            with pytest.raises(KilledError, match="stopped"):
                quick(ask(folder, "append"), listen=[Stop(stage)])
            assert len(self.grown(folder)) in (200, 240)
            if stage in ("load", "append"):
                assert len(self.grown(folder)) == 200
        quick(ask(folder, "append"))
        np.testing.assert_array_equal(self.grown(folder), wanted)

    def test_once_when_stopped_before_it_could_write_that_down(self, folder, wanted):
        """The rows are there, the manifest does not say so: they are recognised."""
        new_file(folder)
        quick(ask(folder, "append"))
        self.forget(folder / "append", "append")
        quick(ask(folder, "append"))
        np.testing.assert_array_equal(self.grown(folder), wanted)

    def forget(self, folder, stage: str) -> None:
        """Take a stage, and all after it, out of the manifest."""
        job = JobFolder.open(folder)
        names = list(job.stages)
        for name in names[names.index(stage) :]:
            del job._manifest.stages[name]
        job._write()

    def test_other_rows_of_the_same_number_are_not_taken_for_its_own(self, folder):
        new_file(folder)
        with pytest.raises(KilledError, match="stopped"):
            quick(ask(folder, "append"), listen=[Stop("append")])
        others = new_file(folder, NEW[::-1] + 1.0, "others.npy")
        quick(ask(folder, "append", "others", data=others))
        with pytest.raises(JobError, match=r"had 200 objects .* another job has added some"):
            quick(ask(folder, "append"))
        assert len(self.grown(folder)) == 240

    def test_two_after_another(self, folder, wanted):
        new_file(folder)
        quick(ask(folder, "append", "one", data=new_file(folder, NEW[:15], "one.npy")))
        quick(ask(folder, "append", "two", data=new_file(folder, NEW[15:], "two.npy")))
        np.testing.assert_array_equal(self.grown(folder)[:, 1:], wanted[:, 1:])

    @pytest.mark.process
    def test_once_when_killed(self, folder, wanted):
        new_file(folder)
        run_and_kill(ask(folder, "append"), "append")
        quick(ask(folder, "append"))
        np.testing.assert_array_equal(self.grown(folder), wanted)


class TestSelect:
    def test_fits_every_candidate_and_keeps_the_best(self, tmp_path):
        data_file(tmp_path)
        parameters = {k: v for k, v in PARAMETERS.items() if k not in ("n_clusters", "init")}
        by = {"candidates": [2, 3, 4], "criterion": "nonspecificity"}
        values = config(tmp_path, task="select", parameters=parameters, **by)
        with pytest.raises(KilledError, match="stopped"):
            quick(values, listen=[Stop("fit", 40)])
        result = quick(values)
        found = json.loads((tmp_path / "job/selection.json").read_text())
        assert [row["n_clusters"] for row in found["candidates"]] == [2, 3, 4]
        assert found["best"] == 3 == result.metrics["n_clusters"]
        alone = EVCLUS(3, focal_sets="pairs", **{**parameters, "n_jobs": 1}).fit(blobs())
        np.testing.assert_array_equal(masses(result), np.asarray(alone.credal_partition_.mass))
        assert result.model().n_clusters == 3
        before = stages(result)
        assert stages(quick(values)) == before


class TestCombine:
    def test_partitions_of_the_same_objects(self, folder):
        other = {**PARAMETERS, "random_state": 8, "n_clusters": 2}
        quick(config(folder, "other", parameters=other))
        values = {
            "task": "combine",
            "folder": str(folder / "both"),
            "inputs": [str(folder / "job"), str(folder / "other/masses.zarr")],
            "parameters": {"n_clusters": 3},
        }
        result = run(values)
        assert result.metrics["n_objects"] == 200 and result.metrics["n_clusters"] == 3
        assert os.path.exists(result.report)

    def test_of_other_objects_is_refused(self, folder):
        np.save(folder / "y.npy", blobs(150))
        quick(config(folder, "few", data={"url": str(folder / "y.npy")}))
        values = {
            "task": "combine",
            "folder": str(folder / "both"),
            "inputs": [str(folder / "job"), str(folder / "few")],
            "parameters": {"n_clusters": 3},
        }
        with pytest.raises(JobError, match=r"of the same objects, got \[150, 200\] objects"):
            run(values)

    def test_of_nothing_is_refused(self, tmp_path):
        inputs = [str(tmp_path / "none")]
        values = {"task": "combine", "folder": str(tmp_path / "c"), "inputs": inputs}
        with pytest.raises(JobError, match=r"no credal partition at .*none"):
            run({**values, "parameters": {"n_clusters": 2}})


WARM = {k: v for k, v in PARAMETERS.items() if k != "init"}


class TestStart:
    def grown(self, folder, X, **more):
        np.save(folder / "grown.npy", X)
        values = {"data": {"url": str(folder / "grown.npy")}, "parameters": WARM}
        return config(folder, "grown", **{"start": str(folder / "job"), **values, **more})

    def first(self, X, old: int) -> np.ndarray:
        """Masses to start from: the old ones, and the model's for the rest."""
        model = fitted()
        mass = np.asarray(model.credal_partition_.mass)[:old]
        return np.concatenate([mass, model.predict_mass(X[old:])])

    def test_grown_data_keep_the_masses_of_the_old_objects(self, folder):
        X = np.concatenate([blobs(), NEW])
        result = quick(self.grown(folder, X))
        alone = EVCLUS(**WARM, init=self.first(X, 200), n_jobs=1).fit(X)
        np.testing.assert_array_equal(masses(result), np.asarray(alone.credal_partition_.mass))

    def test_other_data_are_placed_by_the_model(self, folder):
        X = np.concatenate([NEW, blobs()])
        result = quick(self.grown(folder, X))
        alone = EVCLUS(**WARM, init=self.first(X, 0), n_jobs=1).fit(X)
        np.testing.assert_array_equal(masses(result), np.asarray(alone.credal_partition_.mass))

    def test_objects_appended_since_are_placed_anew(self, folder):
        new_file(folder)
        quick(ask(folder, "append"))
        X = np.concatenate([blobs(), NEW[:10]])
        result = quick(self.grown(folder, X))
        alone = EVCLUS(**WARM, init=self.first(X, 200), n_jobs=1).fit(X)
        np.testing.assert_array_equal(masses(result), np.asarray(alone.credal_partition_.mass))

    def test_many_clusters_draw_the_pairs_that_the_fit_compares(self, tmp_path):
        rng = np.random.default_rng(0)
        X = (9 * rng.normal(size=(15, 4)))[np.arange(600) % 15] + rng.normal(size=(600, 4))
        np.save(tmp_path / "x.npy", X)
        parameters = {"n_clusters": 15, "n_dissimilarities": 40, "random_state": 0}
        values = {"data": {"url": str(tmp_path / "x.npy")}, "parameters": parameters}
        quick(config(tmp_path, "old", **values))
        result = quick(config(tmp_path, "new", **values, start=str(tmp_path / "old")))
        assert result.metrics["n_objects"] == 600

    def test_partitions_are_refused_before_anything_is_sampled(self, folder):
        parameters = {**WARM, "partitions": 2}
        with pytest.raises(JobError, match="partitions=2 cannot be combined with given masses"):
            quick(self.grown(folder, blobs(), parameters=parameters))
        assert list(stages(folder / "grown")) == ["load", "validate"]

    def test_too_many_rows_are_refused_before_anything_is_sampled(self, folder, monkeypatch):
        monkeypatch.setattr(door, "PARTITION_ROWS", 100)
        parameters = {**WARM, "memory_limit": 1 << 14}
        with pytest.raises(JobError, match=r"not enough memory: .* or raise memory_limit\.$"):
            quick(self.grown(folder, blobs(), parameters=parameters))
        assert list(stages(folder / "grown")) == ["load", "validate"]
        assert not (folder / "grown" / "partitions.zarr").exists()

    def test_from_nothing_is_refused(self, folder):
        with pytest.raises(JobError, match=r"no finished model at"):
            quick(self.grown(folder, blobs(), start=str(folder / "none")))
        assert list(stages(folder / "grown")) == ["load"], "before the sampling"


class TestExtras:
    MUST, CANNOT = ((0, 1), (2, 3)), ((0, 5), (4, 9))

    def linked(self) -> np.ndarray:
        model = EVCLUS(**PARAMETERS, n_jobs=1)
        model.fit(blobs(), must_link=self.MUST, cannot_link=self.CANNOT)
        return np.asarray(model.credal_partition_.mass)

    def table(self, folder, name="links.csv", **columns) -> str:
        rows = [(*pair, "must") for pair in self.MUST] + [(*p, "cannot") for p in self.CANNOT]
        frame = pd.DataFrame(rows, columns=["i", "j", "link"]).assign(**columns)
        path = folder / name
        frame.to_csv(path, index=False) if name.endswith("csv") else frame.to_parquet(path)
        return str(path)

    def test_links_in_the_configuration_or_in_a_file(self, tmp_path):
        data_file(tmp_path)
        given = [
            {"must": self.MUST, "cannot": self.CANNOT},
            {"url": self.table(tmp_path)},
            {"url": self.table(tmp_path, "links.parquet")},
            {"must": self.MUST, "url": self.table(tmp_path)},  # twice the same are one
        ]
        wanted = self.linked()
        for place, links in enumerate(given):
            result = quick(config(tmp_path, f"job{place}", links=links))
            np.testing.assert_array_equal(masses(result), wanted)

    @pytest.mark.parametrize(
        ("columns", "sentence"),
        [
            ({"link": "maybe"}, "must hold 'must' or 'cannot', but row 0 holds 'maybe'"),
            ({"i": 0.5}, "'i' of .* must hold numbers of objects, from 0, but row 0 holds 0.5"),
            ({"j": 999}, "999"),
            ({"i": 1, "j": 1, "link": "cannot"}, "1"),
        ],
    )
    def test_links_that_are_none_are_refused_before_the_sampling(self, tmp_path, columns, sentence):
        data_file(tmp_path)
        with pytest.raises(JobError, match=sentence):
            quick(config(tmp_path, links={"url": self.table(tmp_path, **columns)}))
        assert list(stages(tmp_path / "job")) == ["load"]

    def test_a_table_of_links_without_their_columns(self, tmp_path):
        data_file(tmp_path)
        (tmp_path / "links.csv").write_text("a,b\n1,2\n")
        with pytest.raises(JobError, match=r"with the columns i, j and link, got a, b"):
            quick(config(tmp_path, links={"url": str(tmp_path / "links.csv")}))
        with pytest.raises(JobError, match=r"There is no file .*no.csv"):
            quick(config(tmp_path, "b", links={"url": str(tmp_path / "no.csv")}))

    def test_weights_and_known_classes(self, tmp_path):
        X = blobs()
        frame = pd.DataFrame(X, columns=["a", "b"])
        frame["w"] = 1.0 + np.arange(200) % 2
        frame["kind"] = fitted().labels_
        frame.to_csv(tmp_path / "x.csv", index=False)
        data = {"url": str(tmp_path / "x.csv"), "weight": "w", "label": "kind"}
        result = quick(config(tmp_path, data=data))
        alone = EVCLUS(**PARAMETERS, n_jobs=1).fit(X, sample_weight=frame["w"])
        np.testing.assert_array_equal(masses(result), np.asarray(alone.credal_partition_.mass))
        assert result.metrics["adjusted_rand_index"] == pytest.approx(1.0, abs=0.05)

    def test_a_square_matrix(self, tmp_path):
        X = blobs(60)
        D = np.linalg.norm(X[:, None] - X[None], axis=2)
        data_file(tmp_path, D)
        parameters = {**PARAMETERS, "metric": "precomputed"}
        result = run(config(tmp_path, parameters=parameters))
        alone = EVCLUS(**parameters, n_jobs=1).fit(D)
        np.testing.assert_array_equal(masses(result), np.asarray(alone.credal_partition_.mass))

    def test_another_algorithm(self, tmp_path):
        data_file(tmp_path)
        values = config(tmp_path, algorithm="ecm", parameters={"n_clusters": 3})
        result = quick(values)
        assert result.metrics["n_clusters"] == 3
        assert "pairs.zarr" not in os.listdir(result.folder.url)
        with pytest.raises(StoreError, match=r"EVCLUS"):
            EVCLUS.load(result.folder.url)
