"""Checkpoints: the last whole one comes back, with the same bits, whenever the run was killed."""

from __future__ import annotations

import errno
import json
import math
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import programs
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.engine.loop import Descent
from evdist.evclus.irqp import Stop, minimise
from evdist.evclus.problem import Plan, Problem
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.sampling import draw_layout, sample_pairs
from evdist.stores import encoding
from evdist.stores.checkpoint import Checkpoint
from evdist.stores.encoding import StoreError
from evdist.stores.fingerprints import fingerprint

PROBLEM = {"d0": 2.5, "pairs": fingerprint("pairs"), "focal sets": fingerprint("focal sets")}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Seven rows of four masses in a chunk."""
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 7 * 4 * 4)


def masses(sweep: int, n: int = 30, f: int = 4) -> np.ndarray:
    return np.random.default_rng(sweep).dirichlet(np.ones(f), n).astype(np.float32)


def state(sweep: int) -> dict:
    return {"sweep": sweep, "error": 0.1 / (sweep + 1), "history": [1 / 3] * (sweep + 1)}


def save(checkpoint: Checkpoint, sweep: int) -> None:
    checkpoint.save(masses(sweep), state(sweep), PROBLEM)


def holds(checkpoint: Checkpoint, sweep: int) -> None:
    found = checkpoint.load(PROBLEM)
    assert found is not None
    np.testing.assert_array_equal(found[0], masses(sweep))
    assert found[0].dtype == np.float32
    assert found[1] == state(sweep)


# ------------------------------------------------------------------ what comes back
def test_the_last_one_comes_back(tmp_path):
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    assert checkpoint.load(PROBLEM) is None
    for sweep in range(4):
        save(checkpoint, sweep)
        holds(checkpoint, sweep)
        holds(Checkpoint(str(tmp_path / "checkpoint")), sweep)


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_any_fsspec_url_will_do(tmp_path, scheme):
    checkpoint = Checkpoint(f"{scheme}://{tmp_path}/deep/checkpoint")
    assert checkpoint.load(PROBLEM) is None
    for sweep in range(3):
        save(checkpoint, sweep)
    holds(pickle.loads(pickle.dumps(checkpoint)), 2)


@given(
    n=st.integers(1, 40),
    f=st.integers(1, 6),
    error=st.floats(allow_nan=False, allow_infinity=False),
    history=st.lists(st.floats(0, 1), max_size=5),
)
def test_every_bit_comes_back(tmp_path_factory, n, f, error, history):
    checkpoint = Checkpoint(tmp_path_factory.mktemp("checkpoint"))
    mass = masses(0, n, f)
    checkpoint.save(mass, {"sweep": 3, "error": error, "history": history}, PROBLEM)
    found = checkpoint.load(PROBLEM)
    assert found is not None
    np.testing.assert_array_equal(found[0].view(np.uint32), mass.view(np.uint32))
    assert math.copysign(1, found[1]["error"]) == math.copysign(1, error)
    assert found[1] == {"sweep": 3, "error": error, "history": history}


def test_at_most_two_slots_are_kept_and_nothing_else_is_touched(tmp_path):
    (tmp_path / "slot-of-mine").mkdir()
    (tmp_path / "notes.txt").write_text("keep")
    for sweep in range(4):
        save(Checkpoint(tmp_path), sweep)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name[:5] for name in names] == ["manif", "notes", "slot-", "slot-", "slot-"]
    assert "slot-of-mine" in names


def test_a_fit_goes_on_from_it_with_the_same_bits(tmp_path):
    layout = draw_layout(300, 20, 0)
    data = AttributeSource.of(np.random.default_rng(0).normal(size=(300, 2)), "euclidean")
    focal = FocalSets.simple(3)
    problem = Problem(focal, sample_pairs(data, layout, 2.0), Plan.of(layout.bounds.tolist()))
    start = masses(0, 300, len(focal))
    checkpoint, names = Checkpoint(tmp_path), {"seed": 0, "focal sets": fingerprint(focal.masks)}

    def fit(mass, begin: Descent | None, stop: Stop) -> tuple[np.ndarray, Descent]:
        seen: list[Descent] = []
        with NumbaRows().executor(problem, mass) as executor:
            minimise(
                executor, 1 / 6000, stop, begin=begin,
                checkpoint=lambda now, last: seen.append(now),
            )  # fmt: skip
            return executor.masses().copy(), seen[-1]

    whole, end = fit(start, None, Stop(0.0, 6))
    half, middle = fit(start, None, Stop(0.0, 3))
    known = {"sweep": 3, "error": middle.error, "history": [*middle.history]}
    checkpoint.save(half, known, names)
    found = checkpoint.load(names)
    assert found is not None
    again, last = fit(
        found[0], Descent(None, tuple(found[1]["history"]), found[1]["error"]), Stop(0.0, 6)
    )
    np.testing.assert_array_equal(again, whole)
    assert last == end


# ------------------------------------------------------------------ several writers
def test_writers_elsewhere_fill_their_own_rows(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    save(checkpoint, 0)
    slot = checkpoint.begin((30, 4), state(1), PROBLEM)
    assert slot.chunks == [(0, 7), (7, 14), (14, 21), (21, 28), (28, 30)]
    sent = pickle.dumps((checkpoint, slot))

    def work(chunk: tuple[int, int]) -> None:
        there, mine = pickle.loads(sent)
        there.write(mine, chunk[0], masses(1)[slice(*chunk)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, slot.chunks))
    holds(checkpoint, 0)
    checkpoint.commit(slot)
    holds(checkpoint, 1)


def test_a_slot_with_gaps_is_not_committed(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    save(checkpoint, 0)
    slot = checkpoint.begin((30, 4), state(1), PROBLEM)
    checkpoint.write(slot, 7, masses(1)[7:14])
    with pytest.raises(StoreError, match=r"has 1 of 5 chunks of masses\. Write them all"):
        checkpoint.commit(slot)
    holds(checkpoint, 0)


def test_only_whole_chunks_of_numbers_are_written(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    slot = checkpoint.begin((30, 4), state(1), PROBLEM)
    for lo, hi in [(0, 6), (1, 8), (0, 14), (28, 29)]:
        with pytest.raises(StoreError, match="one whole chunk at a time"):
            checkpoint.write(slot, lo, masses(1)[lo:hi])
    bad = masses(1)
    bad[9, 2] = np.nan
    with pytest.raises(StoreError, match="those of position 9 are not"):
        checkpoint.write(slot, 7, bad[7:14])


def test_a_writer_that_was_given_up_cannot_spoil_the_next_save(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    lost = checkpoint.begin((30, 4), state(1), PROBLEM)
    save(checkpoint, 2)
    with pytest.raises(FileNotFoundError, match="slot"):
        checkpoint.write(lost, 0, masses(1)[:7])
    holds(checkpoint, 2)


# ------------------------------------------------------------------ interrupted
def fail_at(monkeypatch, step: int) -> list[str]:
    """Let the disk be full from the given write on, of a chunk, of metadata or the manifest.

    The list gets what was put in place by a rename.
    """
    count, placed = iter(range(10**9)), []

    def full() -> None:
        if next(count) >= step:
            raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("set", "set_if_not_exists"):
        write = getattr(zarr.storage.LocalStore, name)

        async def failing(self, *args, write=write, **kwargs):
            full()
            await write(self, *args, **kwargs)

        monkeypatch.setattr(zarr.storage.LocalStore, name, failing)
    for name in ("fsync", "replace"):
        call = getattr(os, name)

        def failing_call(*args, call=call):
            full()
            call(*args)
            placed.extend(Path(path).name for path in args[1:])

        monkeypatch.setattr(os, name, failing_call)
    return placed


@pytest.mark.parametrize("before", [0, 1])
def test_a_full_disk_at_any_step_leaves_the_last_one(tmp_path, monkeypatch, before):
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 16 * 4 * 4)  # two chunks
    step, failed = 0, True
    while failed:
        checkpoint = Checkpoint(tmp_path / str(step))
        for sweep in range(before):
            save(checkpoint, sweep)
        with pytest.MonkeyPatch.context() as patch:
            placed = fail_at(patch, step)
            try:
                save(checkpoint, 5)
                failed = False
            except OSError as error:
                assert error.errno == errno.ENOSPC
        if "manifest.json" in placed:
            holds(checkpoint, 5)
        elif before:
            holds(checkpoint, before - 1)
        else:
            assert checkpoint.load(PROBLEM) is None
        save(checkpoint, 6)
        holds(checkpoint, 6)
        step += 1
    assert step > 8


_SAVER = """
import sys
sys.path.insert(0, {folder!r})
from test_stores_checkpoint import Checkpoint, encoding, save
encoding.CHUNK_BYTES = 7 * 4 * 4
checkpoint = Checkpoint({url!r})
for sweep in range({first}, 10**6):
    save(checkpoint, sweep)
    print(sweep, flush=True)
"""


@pytest.mark.process
def test_a_killed_run_leaves_its_last_checkpoint(tmp_path):
    sweep = -1
    for lines in (3, 10):
        script = _SAVER.format(
            folder=str(Path(__file__).parent), url=str(tmp_path), first=sweep + 1
        )
        told = int(programs.killed_after(lines, ["-c", script])[-1])
        found = Checkpoint(tmp_path).load(PROBLEM)
        assert found is not None
        sweep = found[1]["sweep"]
        assert sweep >= told
        holds(Checkpoint(tmp_path), sweep)


# ------------------------------------------------------------------ refused
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"d0": 3.0}, r"d0 2\.5 instead of 3\.0"),
        ({"pairs": fingerprint("others")}, "another pairs"),
        ({"d0": 3, "focal sets": "x"}, r"d0 2\.5 instead of 3, another focal sets"),
        ({"seed": 1}, "seed None instead of 1"),
    ],
)
def test_that_of_another_fit(tmp_path, changes, sentence):
    checkpoint = Checkpoint(tmp_path / "c")
    save(checkpoint, 0)
    message = rf"/c is the checkpoint of another fit: {sentence}\. Remove it"
    with pytest.raises(StoreError, match=message):
        checkpoint.load({**PROBLEM, **changes})
    with pytest.raises(StoreError, match=message):
        checkpoint.save(masses(1), state(1), {**PROBLEM, **changes})
    holds(checkpoint, 0)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ({"evdist": "pairs"}, "must hold evdist 'checkpoint', got evdist 'pairs'"),
        ({"version": 2}, "has version 2, this evdist reads version 1"),
        ({"n": 31}, "were changed after it was written"),
        ({"state": {"sweep": 9}}, "were changed after it was written"),
        ({"slot": "slot-00000000"}, "were changed after it was written"),
        ({"problem": {}}, "were changed after it was written"),
    ],
)
def test_a_manifest_edited_by_hand(tmp_path, edit, sentence):
    checkpoint = Checkpoint(tmp_path)
    save(checkpoint, 0)
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **edit}))
    with pytest.raises(StoreError, match=sentence):
        checkpoint.load(PROBLEM)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "\xff"])
def test_a_manifest_that_is_none(tmp_path, text):
    (tmp_path / "manifest.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(StoreError, match=r"manifest\.json (is damaged|must hold evdist)"):
        Checkpoint(tmp_path).load(PROBLEM)


@pytest.mark.parametrize("harm", ["lose", "cut", "nan", "gone"])
def test_masses_that_are_lost_or_damaged(tmp_path, harm):
    checkpoint = Checkpoint(tmp_path)
    save(checkpoint, 0)
    (slot,) = tmp_path.glob("slot-*")
    chunk = slot / "c" / "1" / "0"
    if harm == "lose":
        chunk.unlink()
    elif harm == "cut":
        chunk.write_bytes(chunk.read_bytes()[:-1])
    elif harm == "nan":
        zarr.open_array(slot, mode="r+")[3] = np.nan
    else:
        (slot / "zarr.json").unlink()
    with pytest.raises(StoreError, match=r"is damaged: .*Remove it and start again"):
        checkpoint.load(PROBLEM)


def test_a_state_that_json_cannot_hold(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        Checkpoint(tmp_path).save(masses(0), {"error": math.nan}, PROBLEM)
