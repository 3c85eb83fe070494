"""The pair store: the same bits back, chunk by chunk, whatever was interrupted; or refused."""

from __future__ import annotations

import errno
import json
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import numpy as np
import programs
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from evdist.data.sources import AttributeSource
from evdist.evclus.pair_store import PairStore, StoredPairs
from evdist.evclus.problem import Pairs
from evdist.evclus.sampling import Layout, draw_layout, row_dissimilarities, sample_pairs
from evdist.kernels.graph import PairGraph
from evdist.kernels.partner_lists import PartnerLists
from evdist.stores.encoding import StoreError, StoreExistsError, StoreNotFoundError
from evdist.stores.fingerprints import fingerprint


def problem(n: int, k: int, seed: int = 0) -> tuple[AttributeSource, Layout]:
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return AttributeSource.of(X, "euclidean"), draw_layout(n, k, seed)


def create(url, data: AttributeSource, layout: Layout, rows: int | None = None, **changes):
    values = {"metric": data.name, "seed": 0, "source": fingerprint(data.table)}
    values |= {"order": layout.order, "graph": layout.graph} | changes
    return PairStore.create(url, **values, rows_per_chunk=rows)


def fill(store: PairStore, source: AttributeSource, layout: Layout) -> None:
    for lo, hi in store.missing():
        store.write(lo, *row_dissimilarities(source, layout, lo, hi))


def stored(url, n: int = 50, k: int = 8, rows: int = 12) -> PairStore:
    source, layout = problem(n, k)
    store = create(url, source, layout, rows)
    fill(store, source, layout)
    store.finish()
    return store


def same(left, right) -> None:
    for a, b in zip(left, right, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------ what comes back
@settings(max_examples=25)
@given(
    n=st.integers(5, 90),
    k=st.integers(1, 12),
    rows=st.integers(1, 100),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    order=st.randoms(use_true_random=False),
)
def test_any_chunks_written_in_any_order_give_the_bits_of_memory(
    tmp_path_factory, n, k, rows, ends, order
):
    source, layout = problem(n, min(k, n - 1))
    url = tmp_path_factory.mktemp("pairs") / "pairs.zarr"
    store = create(url, source, layout, rows)
    chunks = store.chunks
    assert [lo for lo, _ in chunks[1:]] == [hi for _, hi in chunks[:-1]]
    assert (chunks[0][0], chunks[-1][1]) == (0, n)
    order.shuffle(chunks)
    for lo, hi in chunks:
        assert not store.written(lo)
        store.write(lo, *row_dissimilarities(source, layout, lo, hi))
        assert store.written(lo)
    store.finish()

    lo, hi = sorted(round(end * n) for end in ends)
    reopened = PairStore.open(url)
    same(reopened.read(lo, hi), row_dissimilarities(source, layout, lo, hi))
    memory = sample_pairs(source, layout, 1.5)
    same(StoredPairs(reopened, 1.5).block(lo, hi), memory.block(lo, hi))


def test_a_store_tells_what_it_is_of(tmp_path):
    source, layout = problem(50, 8)
    stored(tmp_path / "p.zarr")
    store = PairStore.open(tmp_path / "p.zarr")
    assert (store.n, store.k) == (50, 8)
    assert store.graph == layout.graph
    assert (store.metric, store.seed, store.source) == ("euclidean", 0, fingerprint(source.table))
    same([store.order], [layout.order])


def test_the_layout_is_as_the_design_says(tmp_path):
    stored(tmp_path / "p.zarr", n=50, k=8, rows=12)
    group = zarr.open_group(tmp_path / "p.zarr", mode="r")
    attributes = dict(group.attrs)
    assert group.metadata.zarr_format == 3
    assert (attributes["evdist"], attributes["version"]) == ("pairs", 1)
    assert {"n", "k", "colours", "offsets", "shifts", "metric", "seed", "source"} < set(attributes)
    assert attributes["complete"] is True
    for name, dtype in [("partner", np.uint32), ("dissimilarity", np.float32)]:
        assert (group[name].shape, group[name].chunks) == ((50, 8), (12, 8))
        assert group[name].dtype == dtype


def test_unused_places_hold_the_row_itself_and_zero(tmp_path):
    graph = PairGraph(5, 5, (1, 4), (0, 0))
    layout = Layout(np.arange(5, dtype=np.uint32), graph)
    source, _ = problem(5, 2)
    store = create(tmp_path / "p.zarr", source, layout)
    partner, D = np.array([[1, 4], [2, 0], [3, 1], [4, 2], [0, 3]]), np.ones((5, 2), np.float32)
    store.write(0, partner, np.array([2, 1, 2, 0, 2]), D)
    partner, degree, D = store.read(0, 5)
    assert partner.tolist() == [[1, 4], [2, 1], [3, 1], [3, 3], [0, 3]]
    assert degree.tolist() == [2, 1, 2, 0, 2]
    assert D.tolist() == [[1, 1], [1, 0], [1, 1], [0, 0], [1, 1]]


def test_every_bit_of_a_dissimilarity_survives(tmp_path):
    source, layout = problem(64, 6)
    store = create(tmp_path / "p.zarr", source, layout, 10)
    rng = np.random.default_rng(1)
    D = rng.integers(0, 0x7F800000, (64, layout.graph.k), dtype=np.uint32).view(np.float32)
    for lo, hi in store.chunks:
        store.write(lo, *layout.graph.partners(lo, hi), D[lo:hi])
    _, degree, back = store.read(0, 64)
    used = np.arange(layout.graph.k) < degree[:, None]
    np.testing.assert_array_equal(back.view(np.uint32)[used], D.view(np.uint32)[used])


def test_d0_changes_without_sampling_again(tmp_path):
    store = stored(tmp_path / "p.zarr")
    D = store.read(0, 50)[2].astype(float).ravel()
    for d0 in (0.5, 3.0):
        delta = StoredPairs(store, d0).block(0, 50).delta
        np.testing.assert_allclose(delta, 1 - 0.05 ** (D / d0) ** 2, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_any_fsspec_url_will_do(tmp_path, scheme):
    url = f"{scheme}://{tmp_path}/p.zarr"
    store = stored(url)
    same(PairStore.open(url).read(3, 40), store.read(3, 40))


def test_a_process_elsewhere_reopens_it_by_its_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs: Pairs = StoredPairs(stored("p.zarr", n=400, k=20), 2.0)
    sent = pickle.dumps(pairs)
    assert len(sent) < 400
    monkeypatch.chdir("/")
    same(pickle.loads(sent).block(5, 33), pairs.block(5, 33))


def test_partners_that_are_not_those_of_the_graph_are_refused(tmp_path):
    pairs = StoredPairs(stored(tmp_path / "p.zarr", n=400, k=20), 2.0)
    lists = PartnerLists.of(pairs.graph)
    np.testing.assert_array_equal(pairs.dissimilarities(5, 33, lists), pairs.store.read(5, 33)[2])
    at = zarr.open_group(tmp_path / "p.zarr")["partner"]
    at[7, 3] = (at[7, 3] + 1) % 400
    with pytest.raises(
        StoreError, match=r"some of rows 5\.\.32 have other partners than its graph"
    ):
        StoredPairs(PairStore.open(tmp_path / "p.zarr"), 2.0).dissimilarities(5, 33, lists)


# ------------------------------------------------------------------ sampling
def test_four_threads_write_their_own_chunks(tmp_path):
    source, layout = problem(900, 10)
    store = create(tmp_path / "p.zarr", source, layout, 16)
    with ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(store.write, lo, *row_dissimilarities(source, layout, lo, hi))
            for lo, hi in store.chunks
        ]
        for job in jobs:
            job.result()
    store.finish()
    same(PairStore.open(store.url).read(0, 900), row_dissimilarities(source, layout, 0, 900))


def test_memory_is_that_of_a_chunk(tmp_path):
    source, layout = problem(20_000, 50)
    store = create(tmp_path / "p.zarr", source, layout, 500)
    whole = 20_000 * 50 * 4
    tracemalloc.start()
    fill(store, source, layout)
    store.finish()
    for lo, hi in store.chunks:
        StoredPairs(store, 1.0).block(lo, hi)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < whole / 2


def test_only_whole_chunks_are_written(tmp_path):
    source, layout = problem(50, 8)
    store = create(tmp_path / "p.zarr", source, layout, 12)
    for lo, count in [(0, 11), (1, 12), (12, 24), (48, 1), (60, 12), (-12, 12)]:
        rows = row_dissimilarities(source, layout, 0, count)
        with pytest.raises(StoreError, match=f"one whole chunk .*got {count} rows from {lo} on"):
            store.write(lo, *rows)
    store.write(48, *row_dissimilarities(source, layout, 48, 50))
    assert store.missing() == store.chunks[:-1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_bad_dissimilarities_are_refused_with_the_pair(tmp_path, bad):
    source, layout = problem(50, 8)
    store = create(tmp_path / "p.zarr", source, layout, 12)
    partner, degree, D = row_dissimilarities(source, layout, 12, 24)
    D[3, 2] = bad
    where = rf"got {bad} between positions 15 and {partner[3, 2]}\."
    with pytest.raises(StoreError, match=where):
        store.write(12, partner, degree, D)
    with pytest.raises(StoreError, match=r"must be of shape \(12, 8\)"):
        store.write(12, partner, degree, D[:, :3])
    with pytest.raises(StoreError, match=r"Rows must have 0\.\.8 partners, each below 50"):
        store.write(12, partner + np.uint32(50), degree, abs(D))
    assert not store.written(12)


def test_a_store_with_gaps_is_not_finished_nor_read(tmp_path):
    source, layout = problem(50, 8)
    store = create(tmp_path / "p.zarr", source, layout, 12)
    store.write(12, *row_dissimilarities(source, layout, 12, 24))
    assert store.missing() == [(0, 12), (24, 36), (36, 48), (48, 50)]
    with pytest.raises(StoreError, match=r"lacks 4 of 5 chunks, the first of them rows 0\.\.11"):
        store.finish()
    with pytest.raises(StoreError, match="does not hold row 24 yet"):
        store.read(20, 30)
    with pytest.raises(IndexError, match=r"must lie in 0\.\.50, got 40\.\.51"):
        store.read(40, 51)
    with pytest.raises(StoreError, match=r"p\.zarr is half written.*goes on where it stopped"):
        PairStore.open(store.url)


def test_order_must_be_a_permutation(tmp_path):
    source, layout = problem(50, 8)
    for order in (layout.order[:-1], np.zeros(50, int), layout.order + 1):
        with pytest.raises(ValueError, match=r"each of the objects 0\.\.49 once"):
            create(tmp_path / "p.zarr", source, layout, order=order)


# ------------------------------------------------------------------ interrupted
def fail_at(monkeypatch, step: int) -> None:
    """Let the disk be full from the given write to a local zarr store on."""
    count = iter(range(10**9))
    for name in ("set", "set_if_not_exists"):
        write = getattr(zarr.storage.LocalStore, name)

        async def failing(self, *args, write=write, **kwargs):
            if next(count) >= step:
                raise OSError(errno.ENOSPC, "No space left on device")
            await write(self, *args, **kwargs)

        monkeypatch.setattr(zarr.storage.LocalStore, name, failing)


def test_sampling_goes_on_wherever_it_was_interrupted(tmp_path):
    source, layout = problem(50, 8)
    expected = row_dissimilarities(source, layout, 0, 50)
    step, finished = 0, False
    while not finished:
        url = tmp_path / f"{step}.zarr"
        with pytest.MonkeyPatch.context() as patch:
            fail_at(patch, step)
            try:
                store = create(url, source, layout, 20)
                fill(store, source, layout)
                store.finish()
                finished = True
            except OSError:
                with pytest.raises(StoreError, match=r"no pair store|not a zarr|must hold|half"):
                    PairStore.open(url)
        store = create(url, source, layout, 25)
        fill(store, source, layout)
        store.finish()
        same(PairStore.open(url).read(0, 50), expected)
        same([PairStore.open(url).order], [layout.order])
        group = zarr.open_group(url, mode="r")
        assert group["degree"].chunks[0] == group["partner"].chunks[0]
        step += 1
    assert step > 15


def test_what_is_there_is_not_sampled_again(tmp_path):
    source, layout = problem(50, 8)
    store = create(tmp_path / "p.zarr", source, layout, 12)
    store.write(12, *row_dissimilarities(source, layout, 12, 24))
    again = create(tmp_path / "p.zarr", source, layout)
    assert again.missing() == [(0, 12), (24, 36), (36, 48), (48, 50)]
    fill(again, source, layout)
    again.finish()
    assert create(tmp_path / "p.zarr", source, layout).missing() == []


_SAMPLER = """
import sys, time
sys.path.insert(0, {folder!r})
from test_stores_pairs import create, problem, row_dissimilarities
source, layout = problem(1500, 8)
store = create({url!r}, source, layout, 10)
for lo, hi in store.missing():
    store.write(lo, *row_dissimilarities(source, layout, lo, hi))
    print(lo, flush=True)
    time.sleep(0.02)  # so that it is not over before it is killed
"""


@pytest.mark.process
def test_a_killed_sampling_goes_on(tmp_path):
    url = str(tmp_path / "p.zarr")
    script = _SAMPLER.format(folder=str(Path(__file__).parent), url=url)
    told = [int(line) for line in programs.killed_after(20, ["-c", script])]
    source, layout = problem(1500, 8)
    store = create(url, source, layout)
    missing = [lo for lo, _ in store.missing()]
    assert missing
    assert not set(missing) & set(told)
    fill(store, source, layout)
    store.finish()
    same(PairStore.open(url).read(0, 1500), row_dissimilarities(source, layout, 0, 1500))


# ------------------------------------------------------------------ refused
def test_nothing_there(tmp_path):
    with pytest.raises(StoreNotFoundError, match=r"no pair store at .*p\.zarr"):
        PairStore.open(tmp_path / "p.zarr")
    assert issubclass(StoreNotFoundError, FileNotFoundError)
    assert issubclass(StoreExistsError, FileExistsError)


def test_what_is_no_pair_store(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="not a zarr v3 group, so not a pair store"):
        PairStore.open(tmp_path / "folder")
    zarr.create_array(tmp_path / "array", shape=(3, 3), dtype=float)
    with pytest.raises(StoreError, match="not a zarr v3 group, so not a pair store"):
        PairStore.open(tmp_path / "array")
    zarr.create_group(tmp_path / "masses", attributes={"evdist": "masses", "version": 1})
    with pytest.raises(StoreError, match="must hold evdist 'pairs', got evdist 'masses'"):
        PairStore.open(tmp_path / "masses")
    zarr.create_group(tmp_path / "other")
    with pytest.raises(StoreError, match="got something that evdist did not write"):
        PairStore.open(tmp_path / "other")
    source, layout = problem(50, 8)
    with pytest.raises(StoreError, match="got something that evdist did not write"):
        create(tmp_path / "other", source, layout)


def test_a_store_of_other_pairs_is_not_overwritten(tmp_path):
    source, layout = problem(50, 8)
    stored(tmp_path / "p.zarr")
    for changes, sentence in [
        ({"source": fingerprint("other")}, "another source"),
        ({"seed": 7}, "seed 0 instead of 7"),
        ({"metric": "cosine"}, "metric 'euclidean' instead of 'cosine'"),
        ({"order": layout.order[::-1]}, "another layout"),
    ]:
        with pytest.raises(StoreExistsError, match=f"holds other pairs: {sentence}. Remove it"):
            create(tmp_path / "p.zarr", source, layout, **changes)
    _, wider = problem(50, 10)
    with pytest.raises(StoreExistsError, match="k 8 instead of 10"):
        create(tmp_path / "p.zarr", source, wider)
    PairStore.open(tmp_path / "p.zarr").read(0, 50)


def edit(path: Path, **attributes: object) -> None:
    document = json.loads((path / "zarr.json").read_text())
    document["attributes"] |= attributes
    (path / "zarr.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"evdist": "masses"}, "must hold evdist 'pairs', got evdist 'masses'"),
        ({"version": 2}, "has version 2, this evdist reads version 1"),
        ({"complete": False}, "is half written"),
        ({"complete": "yes"}, "is half written"),
        ({"metric": "cosine"}, "attributes of .* were changed after it was written. Remove it"),
        ({"n": 60}, "were changed after it was written"),
        ({"offsets": []}, "were changed after it was written"),
        ({"seal": None}, "were changed after it was written"),
    ],
)
def test_attributes_edited_by_hand(tmp_path, attributes, sentence):
    stored(tmp_path / "p.zarr")
    edit(tmp_path / "p.zarr", **attributes)
    with pytest.raises(StoreError, match=sentence):
        PairStore.open(tmp_path / "p.zarr")


@pytest.mark.parametrize("name", ["partner", "dissimilarity", "degree", "order"])
def test_arrays_that_are_gone_or_of_another_shape(tmp_path, name):
    stored(tmp_path / "p.zarr")
    group = zarr.open_group(tmp_path / "p.zarr", mode="a")
    del group[name]
    with pytest.raises(StoreError, match=f"must hold an array '{name}'.*got None"):
        PairStore.open(tmp_path / "p.zarr")
    group.create_array(name, shape=(50, 2), dtype=np.float32)
    with pytest.raises(StoreError, match=rf"must hold an array '{name}'.*got .*\(50, 2\)"):
        PairStore.open(tmp_path / "p.zarr")


@pytest.mark.parametrize(
    "name", ["partner/c/1/0", "dissimilarity/c/1/0", "degree/c/1", "order/c/0"]
)
@pytest.mark.parametrize("harm", ["lose", "empty", "cut", "flip"])
def test_chunks_that_are_lost_or_damaged(tmp_path, name, harm):
    stored(tmp_path / "p.zarr")
    path = tmp_path / "p.zarr" / name
    content = path.read_bytes()
    if harm == "lose":
        path.unlink()
    else:
        flipped = content[:20] + bytes([content[20] ^ 1]) + content[21:]
        path.write_bytes({"empty": b"", "cut": content[:-7], "flip": flipped}[harm])
    store = PairStore.open(tmp_path / "p.zarr")
    with pytest.raises(StoreError, match=r"is damaged|does not hold row 12 yet"):
        store.order if name.startswith("order") else store.read(10, 30)
    store.read(24, 30)


def test_numbers_that_would_lead_the_kernels_astray(tmp_path):
    for name, value in [("partner", 50), ("degree", 9), ("dissimilarity", np.nan)]:
        store = stored(tmp_path / f"{name}.zarr")
        zarr.open_group(store.url, mode="a")[name][13] = value
        with pytest.raises(StoreError, match=r"rows 12\.\.23 is lost or was changed"):
            store.read(12, 24)


def test_a_store_that_may_only_be_read(tmp_path):
    store = stored(f"memory://{tmp_path}/p.zarr")
    readonly = PairStore.open(store.url)
    with pytest.raises(ValueError, match="read-only"):
        readonly.write(0, *[a[:12] for a in store.read(0, 12)])
    fsspec.filesystem("memory").rm(str(tmp_path), recursive=True)
