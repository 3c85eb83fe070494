"""How often a job asks object storage: every request takes tens of milliseconds there."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import s3fs
from s3_bucket import s3_bucket

from evdist import EVCLUS, run
from evdist.stores.lease import Lease
from evdist.stores.paths import read_bytes


@pytest.fixture(scope="module")
def bucket():
    with s3_bucket("requests") as url:
        yield url


@pytest.fixture
def asked(monkeypatch) -> Counter[tuple[str, str]]:
    """Requests of this process so far: (method, key)."""
    found: Counter[tuple[str, str]] = Counter()
    call = s3fs.S3FileSystem._call_s3

    async def counted(self, method, *arguments, **given):
        found[method, given.get("Key", "")] += 1
        return await call(self, method, *arguments, **given)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counted)
    return found


def test_a_small_file_is_one_request_there_or_not(bucket, asked):
    assert read_bytes(f"{bucket}/nothing") is None
    assert asked.total() == 1


def test_a_lease_is_taken_in_a_few_requests_and_kept_with_two(bucket, asked):
    first, second = (Lease(f"{bucket}/lease") for _ in range(2))
    with first.held():
        pass
    asked.clear()
    with second.held():
        # List, read the last; create, read back, list again; remove the last.
        assert asked.total() <= 6
        asked.clear()
        second.beat()
        assert asked.total() == 2  # list, write


def test_a_model_is_loaded_without_a_request_for_the_size_of_its_parts(bucket, asked):
    X = np.random.default_rng(0).normal(size=(300, 2))
    EVCLUS(2, random_state=0).fit(X).save(f"{bucket}/model")
    asked.clear()
    EVCLUS.load(f"{bucket}/model").predict(X[:3])
    # All that is asked for without being read is whether a store is there.
    assert {key.rpartition("/")[2] for method, key in asked if method == "head_object"} <= {
        "zarr.json"
    }


def test_a_job_reads_no_chunk_again_and_again(bucket, tmp_path, asked):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(2000, 3)))
    run(
        {
            "folder": f"{bucket}/job",
            "data": {"url": str(tmp_path / "x.npy")},
            "parameters": {"n_clusters": 2, "n_dissimilarities": 20, "random_state": 0},
        }
    )
    chunks = {key: times for (_, key), times in asked.items() if "/c/" in key}
    assert max(chunks.values()) <= 8, max(chunks, key=chunks.__getitem__)
    assert asked.total() <= 440
