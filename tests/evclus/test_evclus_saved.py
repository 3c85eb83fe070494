"""A fitted model in a folder: the same bits after loading, and a partition that grows there."""

from __future__ import annotations

import json
import shutil
import signal
import textwrap
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import programs
import pytest
import zarr
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from zarr.storage import LocalStore

from evdist import EVCLUS, CredalPartition, FocalSets
from evdist.data import pieces
from evdist.data.inputs import row_blocks
from evdist.evclus import start
from evdist.stores import encoding, growth
from evdist.stores.encoding import StoreError, StoreExistsError, StoreNotFoundError, seal
from evdist.stores.paths import alone

CORNERS = [[3, 3], [12, 3], [3, 12]]
POINTS = make_blobs(420, centers=CORNERS, random_state=5)[0]
X, NEW = POINTS[:250], POINTS[250:]


@pytest.fixture(autouse=True, scope="module")
def small():
    """Fewer landmarks than objects, and chunks and blocks of a few dozen rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start, "MIN_LANDMARKS", 90)
        patch.setattr(start, "LANDMARKS_PER_CLUSTER", 30)
        patch.setattr(encoding, "CHUNK_BYTES", 70 * 4 * 5)
        patch.setattr(pieces, "PIECE_ROWS", 64)
        yield


def fit(X=X, **options) -> EVCLUS:
    settings = {"d0": "q0.5", "n_dissimilarities": 40, "random_state": 0, "n_jobs": 1, **options}
    return EVCLUS(3, **{"metric": "euclidean", **settings}).fit(X)


def same_bits(a, b) -> None:
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b), strict=True)


def hypot(a, b) -> float:
    return float(np.hypot(*(a - b)))


# ---------------------------------------------------------------------- there and back
CASES = {
    "euclidean": (X, NEW, {}),
    "mahalanobis": (X, NEW, {"metric": "mahalanobis"}),
    "cosine": (X, NEW, {"metric": "cosine"}),
    "chebyshev": (X.astype(np.float32), NEW, {"metric": "chebyshev"}),
    "precomputed": (cdist(X, X), cdist(NEW, X), {"metric": "precomputed"}),
    "few objects": (X[:40], NEW, {}),
    "few, precomputed": (cdist(X[:40], X[:40]), cdist(NEW, X[:40]), {"metric": "precomputed"}),
    "random start": (X, NEW, {"init": "random"}),
    "selected pairs": (X, NEW, {"focal_sets": "select"}),
    "own focal sets": (X, NEW, {"focal_sets": FocalSets.of([[0], [1], [2], [0, 2]], 3)}),
    "given d0": (X, NEW, {"d0": np.float64(8.0), "n_init": np.int64(2)}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_loaded_model_is_the_one_saved(case, tmp_path):
    data, new, options = CASES[case]
    model = fit(data, **options)
    model.save(tmp_path / "model")
    loaded = EVCLUS.load(tmp_path / "model")
    same_bits(loaded.predict_mass(new), model.predict_mass(new))
    same_bits(loaded.predict(new), model.predict(new))
    same_bits(loaded.labels_, model.labels_)
    assert loaded.credal_partition_ == model.credal_partition_
    assert isinstance(loaded.credal_partition_.mass, zarr.Array)  # not in memory
    for name in ("objective_", "history_", "n_iter_", "converged_", "d0_", "d0_curve_",
                 "n_features_in_"):  # fmt: skip
        assert getattr(loaded, name) == getattr(model, name)
        assert type(getattr(loaded, name)) is type(getattr(model, name))
    assert loaded.get_params() == model.get_params()
    for mine, theirs in zip(loaded.shepard_pairs(), model.shepard_pairs(), strict=True):
        same_bits(mine, theirs)


def test_a_loaded_model_can_be_saved_again(tmp_path):
    model = fit(metric="mahalanobis", d0="auto")
    model.save(tmp_path / "a")
    EVCLUS.load(tmp_path / "a").save(tmp_path / "b")
    shutil.rmtree(tmp_path / "a")
    again = EVCLUS.load(tmp_path / "b")
    assert again.d0_curve_ == model.d0_curve_ != []
    same_bits(again.predict_mass(NEW), model.predict_mass(NEW))


def test_feature_names_are_remembered(tmp_path):
    frame = pd.DataFrame(X, columns=["width", "height"])
    fit(frame).save(tmp_path / "model")
    loaded = EVCLUS.load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == ["width", "height"]
    loaded.predict(pd.DataFrame(NEW, columns=["width", "height"]))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(pd.DataFrame(NEW, columns=["width", "weight"]))


def test_parameters_that_json_cannot_write_have_their_defaults(tmp_path):
    start = fit().credal_partition_
    seed = np.random.RandomState(1)
    heard = []
    model = fit(init=start, random_state=seed, callbacks=[heard.append], checkpoint=None, n_jobs=2)
    model.save(tmp_path / "model")
    loaded = EVCLUS.load(tmp_path / "model")
    assert (loaded.init, loaded.random_state, loaded.callbacks) == ("auto", None, ())
    assert loaded.n_jobs == 2
    same_bits(loaded.predict_mass(NEW), model.predict_mass(NEW))


def test_a_model_of_listed_pairs_has_labels_but_places_no_object(tmp_path):
    i, j = np.triu_indices(30, 1)
    rows = np.column_stack([i, j, cdist(X, X)[i, j]])
    model = fit(rows, metric="pairs")
    model.save(tmp_path / "model")
    loaded = EVCLUS.load(tmp_path / "model")
    same_bits(loaded.labels_, model.labels_)
    assert not hasattr(loaded, "n_features_in_")
    with pytest.raises(ValueError, match="fitted to a list of pairs cannot place new objects"):
        loaded.append(NEW)


def test_any_fsspec_url_will_do(tmp_path):
    model = fit()
    for url in (f"file://{tmp_path}/model", f"memory://{tmp_path}/model"):
        model.save(url)
        loaded = EVCLUS.load(url).append(NEW)
        assert EVCLUS.load(url).credal_partition_ == loaded.credal_partition_
    assert model.append(NEW).credal_partition_ == loaded.credal_partition_


# ---------------------------------------------------------------------- a function as metric
def test_a_callable_metric_is_asked_for_again(tmp_path):
    model = fit(X[:60], metric=hypot)
    model.save(tmp_path / "model")
    with pytest.raises(StoreError, match=r"cannot be saved.*EVCLUS\.load\(url, metric=function\)"):
        EVCLUS.load(tmp_path / "model")
    loaded = EVCLUS.load(tmp_path / "model", metric=hypot)
    assert loaded.metric is hypot
    same_bits(loaded.predict_mass(NEW[:9]), model.predict_mass(NEW[:9]))
    assert loaded.append(NEW[:9]).credal_partition_ == model.append(NEW[:9]).credal_partition_


def test_a_metric_that_is_saved_is_not_asked_for(tmp_path):
    fit().save(tmp_path / "model")
    with pytest.raises(StoreError, match=r"metric 'euclidean', which is saved with it. Leave out"):
        EVCLUS.load(tmp_path / "model", metric=hypot)


def test_rows_of_unequal_length_are_refused_before_anything_is_written(tmp_path):
    series = [[0.0], [0.1, 0.0], [0.2], [5.0], [5.1, 5.0], [5.2]]

    def differing(a, b):
        return abs(float(np.mean(a) - np.mean(b)))

    model = EVCLUS(2, metric=differing, d0=3.0, random_state=0).fit(series)
    with pytest.raises(TypeError, match="Rows of object cannot be saved without pickle"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_text_is_saved(tmp_path):
    words = np.array([["aaa"], ["aab"], ["abb"], ["xyz"], ["xyy"], ["xzz"]])

    def differing(a, b):
        return float(sum(p != q for p, q in zip(a[0], b[0], strict=True)))

    model = EVCLUS(2, metric=differing, d0=3.0, random_state=0).fit(words)
    model.save(tmp_path / "model")
    again = EVCLUS.load(tmp_path / "model", metric=differing)
    same_bits(again.predict_mass(words), model.predict_mass(words))


# ---------------------------------------------------------------------- append
@pytest.mark.parametrize("case", ["euclidean", "mahalanobis", "precomputed", "selected pairs"])
def test_a_store_grows_as_a_model_in_memory_does(case, tmp_path):
    data, new, options = CASES[case]
    model = fit(data, **options)
    model.save(tmp_path / "model")
    loaded = EVCLUS.load(tmp_path / "model")
    for part in (new[:3], new[3:4], new[4:]):
        assert loaded.append(part) is loaded
        model.append(part)
        assert loaded.credal_partition_ == model.credal_partition_
        same_bits(loaded.labels_, model.labels_)
    again = EVCLUS.load(tmp_path / "model")
    assert again.credal_partition_ == model.credal_partition_
    same_bits(again.predict_mass(new), model.predict_mass(new))


def wrapped(kind: str, folder: Path):
    frame, path = pd.DataFrame(NEW, columns=["a", "b"]), str(folder / f"new.{kind}")
    match kind:
        case "npy":
            np.save(path, NEW)
        case "csv" | "csv.gz":
            frame.to_csv(path, index=False)
        case "parquet":
            frame.set_index(pd.Index(range(7, 177), name="name")).to_parquet(
                path, row_group_size=50
            )
        case "zarr":
            zarr.create_array(path, data=NEW, chunks=(33, 2))
        case "list":
            return NEW.tolist()
        case "columns":
            return np.asfortranarray(NEW)
        case "frame":
            return frame.rename(columns={"a": 0, "b": 1})
        case "dask array":
            return da.from_array(NEW, chunks=(100, 1))
        case "dask frame":
            return dd.from_pandas(frame, npartitions=5)
        case "zarr array":
            return zarr.array(NEW, chunks=(20, 1))
    return path


@pytest.fixture(scope="module")
def grown(small, tmp_path_factory) -> tuple[Path, CredalPartition]:
    """A saved model, and what its partition is after all new objects were appended."""
    model = fit()
    folder = tmp_path_factory.mktemp("grown") / "model"
    model.save(folder)
    return folder, model.append(NEW).credal_partition_


@pytest.fixture
def folder(grown, tmp_path) -> Path:
    return Path(shutil.copytree(grown[0], tmp_path / "model"))


@pytest.mark.parametrize(
    "kind",
    ["npy", "csv", "csv.gz", "parquet", "zarr", "list", "columns", "frame", "dask array",
     "dask frame", "zarr array"],
)  # fmt: skip
def test_new_objects_may_lie_anywhere(kind, grown, folder, tmp_path):
    assert EVCLUS.load(folder).append(wrapped(kind, tmp_path)).credal_partition_ == grown[1]


def test_blocks_are_read_when_they_are_needed():
    read = []

    def note(block, block_info):
        read.append(block_info[0]["chunk-location"][0])
        return block

    table = da.from_array(np.arange(400.0).reshape(200, 2), chunks=(50, 2))
    with dask.config.set(scheduler="synchronous"):  # in this process, whatever client there is
        blocks = row_blocks(table.map_blocks(note, dtype=float, meta=np.empty((0, 2))))
        first, block = next(blocks)
        assert (first, block.shape, read) == (0, (64, 2), [0, 1])
        rest = list(blocks)
    assert [(lo, len(b)) for lo, b in rest] == [(64, 64), (128, 64), (192, 8)]
    same_bits(np.concatenate([block, *(b for _, b in rest)]), np.arange(400.0).reshape(200, 2))


def test_a_model_loaded_before_another_appended_adds_to_what_is_there(grown, folder):
    early, other = EVCLUS.load(folder), EVCLUS.load(folder)
    other.append(NEW[:100])
    assert early.credal_partition_.n_objects == 250
    assert early.append(NEW[100:]).credal_partition_ == grown[1]


def test_fitting_a_loaded_model_leaves_the_store_alone(folder):
    loaded = EVCLUS.load(folder)
    loaded.fit(X[:50]).append(NEW)
    assert isinstance(loaded.credal_partition_.mass, np.ndarray)
    assert EVCLUS.load(folder).credal_partition_.n_objects == 250


def test_bad_objects_are_named_and_none_is_added(grown, folder):
    loaded, bad = EVCLUS.load(folder), NEW.copy()
    bad[130, 1] = np.nan
    with pytest.raises(ValueError, match=r"Counted from row 128 of X on: .* row 2, column 1"):
        loaded.append(bad)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        loaded.append(NEW[:0])
    with pytest.raises(ValueError, match="X has 3 features, but EVCLUS is expecting 2"):
        loaded.append(np.zeros((4, 3)))
    frame = pd.DataFrame({"a": [1.0] * 80, "b": [*[2.0] * 70, "x", *[2.0] * 9]})
    frame.to_csv(folder / "new.csv", index=False)
    with pytest.raises(ValueError, match=r"Column 'b' of .*new.csv is not numeric: row 70 holds"):
        loaded.append(folder / "new.csv")
    assert EVCLUS.load(folder).credal_partition_.n_objects == 250
    assert loaded.append(NEW).credal_partition_ == grown[1]


# ---------------------------------------------------------------------- stopped on the way
def test_an_append_that_stops_at_any_write_changes_nothing(grown, folder, monkeypatch):
    before = np.asarray(EVCLUS.load(folder).credal_partition_.mass)
    countdown, write, replace = [0], LocalStore.set, growth.replace_bytes

    def tick() -> None:
        countdown[0] -= 1
        if countdown[0] < 0:
            raise OSError("no space left on device")

    async def set_or_stop(self, *args, **kwargs):
        tick()
        await write(self, *args, **kwargs)

    def replace_or_stop(*args):
        tick()
        replace(*args)

    monkeypatch.setattr(LocalStore, "set", set_or_stop)
    monkeypatch.setattr(growth, "replace_bytes", replace_or_stop)
    stops = 0
    while True:
        loaded = EVCLUS.load(folder)
        assert loaded.credal_partition_.n_objects == 250
        same_bits(loaded.credal_partition_.mass, before)
        countdown[0] = stops
        try:
            # Other objects each time: what an attempt leaves beyond the end must not come back.
            loaded.append(np.roll(NEW, stops, axis=0))
        except OSError:
            stops += 1
            continue
        break
    assert stops >= 5  # chunks, written for every block, and the number of rows
    mass = np.asarray(EVCLUS.load(folder).credal_partition_.mass)
    same_bits(mass[:250], before)
    same_bits(mass[250:], np.roll(np.asarray(grown[1].mass)[250:], stops, axis=0))


@pytest.mark.process
def test_an_append_that_is_killed_changes_nothing(grown, folder):
    np.save(folder.parent / "new.npy", NEW[::-1])
    program = f"""
        import os, signal
        from evdist import EVCLUS
        from evdist.stores import growth
        growth.sync = lambda url: os.kill(os.getpid(), signal.SIGKILL)
        EVCLUS.load({str(folder)!r}).append({str(folder.parent / "new.npy")!r})
    """
    done = programs.run(["-c", textwrap.dedent(program)])
    assert done.returncode == -signal.SIGKILL
    loaded = EVCLUS.load(folder)
    assert loaded.credal_partition_.n_objects == 250
    assert loaded.append(NEW).credal_partition_ == grown[1]  # the lock is free again


def test_two_cannot_append_at_the_same_time(grown, folder):
    loaded = EVCLUS.load(folder)
    with alone(folder / "model.json"), pytest.raises(StoreError, match="Another process is append"):
        loaded.append(NEW)
    assert loaded.append(NEW).credal_partition_ == grown[1]


def test_a_save_that_stops_leaves_no_model(tmp_path, monkeypatch):
    model = fit()
    with monkeypatch.context() as patch:
        patch.setattr(CredalPartition, "save", lambda self, url: 1 / 0)
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            model.save(tmp_path / "model")
    with pytest.raises(StoreError, match=r"has no model\.json: it is no model, or half written"):
        EVCLUS.load(tmp_path / "model")
    with pytest.raises(StoreExistsError, match=r"exists already. Remove it"):
        model.save(tmp_path / "model")


# ---------------------------------------------------------------------- refused
def test_only_fitted_models_are_saved_and_nothing_is_overwritten(folder):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        EVCLUS(metric="euclidean").save(folder.parent / "other")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        EVCLUS(metric="euclidean").append(X)
    with pytest.raises(StoreExistsError, match=r"exists already. Remove it"):
        EVCLUS.load(folder).save(folder)
    with pytest.raises(StoreNotFoundError, match=r"There is no model at .*nowhere"):
        EVCLUS.load(folder.parent / "nowhere")


def rewrite(folder: Path, change) -> None:
    """A model.json that was edited and sealed again."""
    found = json.loads((folder / "model.json").read_text())
    del found["seal"]
    change(found)
    (folder / "model.json").write_text(json.dumps(seal(found)))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"n_dissimilarities": 40', '"n_dissimilarities": 41',
         r"model\.json were changed after it was written. Save the model again; to change a"),
        ('"n_iter": ', '"n_iter": 1', "changed after it was written"),
        ('"version": 2', '"version": 3', "has version 3, this evdist reads version 2"),
        ('"evdist": "model"', '"evdist": "masses"', "must hold evdist 'model', got evdist 'masse"),
        ('"seal"', '"deal"', "changed after it was written"),
        ("{", "", r"model\.json is damaged: "),
    ],
)  # fmt: skip
def test_an_edited_model_is_refused(old, new, sentence, folder):
    text = (folder / "model.json").read_text()
    assert old in text
    (folder / "model.json").write_text(text.replace(old, new, 1))
    with pytest.raises(StoreError, match=sentence):
        EVCLUS.load(folder)


@pytest.mark.parametrize("content", ["[]", "3", "null", '"model"', "{}"])
def test_what_is_no_model_is_refused(content, folder):
    (folder / "model.json").write_text(content)
    with pytest.raises(StoreError, match="must hold evdist 'model', got something that evdist did"):
        EVCLUS.load(folder)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda m: m["parameters"].update(speed=3), "unexpected keyword argument 'speed'"),
        (lambda m: m.update(parameters=[1]), "is not as it was written"),
        (lambda m: m["parameters"].update(focal_sets={"sets": [[9]]}), "'n_clusters' is missing"),
        (lambda m: m["fitted"].pop("history"), "not as it was written: 'history' is missing"),
        (lambda m: m["fitted"].update(d0="wide"), "could not convert string to float: 'wide'"),
        (lambda m: m["fitted"].update(d0_curve=[1]), "is not as it was written"),
        (lambda m: m["fitted"].update(n_features_in=3), "has 2 features, the model 3"),
        (lambda m: m["fitted"].update(n_objects=251), "has 250 objects, .* saved with 251"),
        (lambda m: m["parts"].update(landmarks="0"), r"landmarks\.zarr is that of another model"),
        (lambda m: m["parts"].update(kept=None), r"kept\.zarr is that of another model"),
        (lambda m: m.update(estimator="ECM"), "holds a model of 'ECM', not of EVCLUS"),
    ],
)
def test_a_model_that_does_not_hold_together_is_refused(change, sentence, folder):
    rewrite(folder, change)
    with pytest.raises(StoreError, match=sentence):
        EVCLUS.load(folder)


def test_parts_of_another_model_are_refused(folder, tmp_path):
    fit(focal_sets="pairs", random_state=1).save(tmp_path / "other")
    for part, sentence in [
        ("landmarks.zarr", "is that of another model. Save the model again"),
        ("kept.zarr", "is that of another model"),
        ("masses.zarr", "has other focal sets than landmarks.zarr"),
    ]:
        mixed = shutil.copytree(folder, tmp_path / f"with {part}")
        shutil.rmtree(mixed / part)
        shutil.copytree(tmp_path / "other" / part, mixed / part)
        with pytest.raises(StoreError, match=sentence):
            EVCLUS.load(mixed)


@pytest.mark.parametrize("part", ["landmarks.zarr", "kept.zarr", "masses.zarr"])
def test_a_part_that_is_gone_is_named(part, folder):
    shutil.rmtree(folder / part)
    with pytest.raises(StoreNotFoundError, match=f"There is no .* at .*{part}"):
        EVCLUS.load(folder)


def test_damaged_landmarks_are_refused(folder, tmp_path):
    store = "landmarks.zarr"
    flipped, gone, other, edited, half = (
        Path(shutil.copytree(folder, tmp_path / case))
        for case in ("flipped", "gone", "other", "edited", "half")
    )
    chunk = flipped / store / "mass" / "c" / "0" / "0"
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(StoreError, match=r"landmarks\.zarr is damaged: .*[cC]hecksum"):
        EVCLUS.load(flipped)
    shutil.rmtree(gone / store / "row")
    with pytest.raises(StoreError, match=r"'row' is lost or was changed. Save the model again"):
        EVCLUS.load(gone)
    zarr.open_group(other / store, mode="r+")["centre"][0] = 99.0
    with pytest.raises(StoreError, match="'centre' is lost or was changed"):
        EVCLUS.load(other)
    zarr.open_group(edited / store, mode="r+").attrs["d0"] = 3.0
    with pytest.raises(StoreError, match=r"attributes of .*landmarks\.zarr were changed"):
        EVCLUS.load(edited)
    zarr.open_group(half / store, mode="r+").attrs["complete"] = False
    with pytest.raises(StoreError, match=r"landmarks\.zarr is half written"):
        EVCLUS.load(half)
