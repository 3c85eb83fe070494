"""Stores in object storage, against a local server that speaks S3."""

from __future__ import annotations

import numpy as np
import pytest
import s3fs
from s3_bucket import s3_bucket

from evdist import EVCLUS, CredalPartition, FocalSets
from evdist.data.sources import AttributeSource
from evdist.evclus.pair_store import PairStore, StoredPairs
from evdist.evclus.sampling import draw_layout, row_dissimilarities
from evdist.stores import encoding
from evdist.stores.checkpoint import Checkpoint
from evdist.stores.encoding import StoreError, StoreExistsError, StoreNotFoundError


@pytest.fixture(scope="module")
def bucket():
    with s3_bucket("bucket") as url:
        yield url


def test_pairs(bucket):
    source = AttributeSource.of(np.random.default_rng(0).normal(size=(50, 3)), "euclidean")
    layout = draw_layout(50, 8, 0)
    settings = {"order": layout.order, "graph": layout.graph, "metric": "euclidean", "seed": 0}
    url = f"{bucket}/job/pairs.zarr"
    with pytest.raises(StoreNotFoundError, match=r"no pair store at s3://bucket/job/pairs\.zarr"):
        PairStore.open(url)
    store = PairStore.create(url, **settings, source="a", rows_per_chunk=12)
    store.write(12, *row_dissimilarities(source, layout, 12, 24))
    with pytest.raises(StoreError, match="half written"):
        PairStore.open(url)
    again = PairStore.create(url, **settings, source="a")
    assert again.missing() == [(0, 12), (24, 36), (36, 48), (48, 50)]
    for lo, hi in again.missing():
        again.write(lo, *row_dissimilarities(source, layout, lo, hi))
    again.finish()
    with pytest.raises(StoreExistsError, match="source 'a' instead of 'b'"):
        PairStore.create(url, **settings, source="b")
    found = PairStore.open(url)
    np.testing.assert_array_equal(found.order, layout.order)
    for a, b in zip(found.read(5, 40), row_dissimilarities(source, layout, 5, 40), strict=True):
        np.testing.assert_array_equal(a, b)
    assert StoredPairs(found, 2.0).block(5, 40).row0 == 5


def test_checkpoints(bucket, monkeypatch):
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 7 * 4 * 4)
    checkpoint = Checkpoint(f"{bucket}/job/checkpoint")
    mass = np.random.default_rng(0).dirichlet(np.ones(4), 30).astype(np.float32)
    assert checkpoint.load({"d0": 1.0}) is None
    for sweep in range(4):
        lost = checkpoint.begin(mass.shape, {"sweep": 99}, {"d0": 1.0})
        checkpoint.write(lost, 0, mass[:7])
        checkpoint.save(mass[::-1] if sweep % 2 else mass, {"sweep": sweep}, {"d0": 1.0})
    found = checkpoint.load({"d0": 1.0})
    assert found is not None
    np.testing.assert_array_equal(found[0], mass[::-1])
    assert found[1] == {"sweep": 3}
    names = s3fs.S3FileSystem().ls("bucket/job/checkpoint", detail=False, refresh=True)
    assert len(names) == 3
    with pytest.raises(StoreError, match=r"another fit: d0 1\.0 instead of 2\.0"):
        checkpoint.load({"d0": 2.0})


def test_partitions(bucket):
    focal = FocalSets.simple(2)
    mass = np.random.default_rng(0).dirichlet(np.ones(4), 30).astype(np.float32)
    for name in ("p.zarr", "p.npz"):
        CredalPartition(mass, focal).save(f"{bucket}/job/{name}")
        assert CredalPartition.load(f"{bucket}/job/{name}") == CredalPartition(mass, focal)


def test_models(bucket, monkeypatch):
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 17 * 4 * 4)
    X = np.random.default_rng(0).normal(size=(90, 2)) + 5 * (np.arange(90)[:, None] % 2)
    url = f"{bucket}/job/model"
    with pytest.raises(StoreNotFoundError, match=r"no model at s3://bucket/job/model"):
        EVCLUS.load(url)
    model = EVCLUS(2, metric="euclidean", d0=5.0, random_state=0).fit(X[:60])
    model.save(url)
    with pytest.raises(StoreExistsError, match="exists already"):
        model.save(url)
    loaded = EVCLUS.load(url)
    np.testing.assert_array_equal(loaded.predict_mass(X), model.predict_mass(X))
    loaded.append(X[60:])
    assert EVCLUS.load(url).credal_partition_ == model.append(X[60:]).credal_partition_
