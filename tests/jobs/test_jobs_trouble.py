"""A full disk, a folder without rights, files edited by hand: a sentence, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from jobs.jobs_cases import blobs, config, data_file, fitted, quick, stages

from evdist.service.jobs import JobError, JobFolder, run
from evdist.stores.encoding import StoreError, StoreNotFoundError

N = 2000


class SmallDisk:
    """A file system of 4 MB and a file that fills it."""

    def __init__(self, place: Path):
        self.place = place
        self._fill = place / "fill"

    def leave(self, kilobytes: int) -> None:
        """Fill it up, but for so much."""
        self.clear()
        found = os.statvfs(self.place)
        with self._fill.open("wb") as file:
            file.write(b"\0" * max(found.f_bavail * found.f_frsize - kilobytes * 1024, 0))

    def clear(self) -> None:
        self._fill.unlink(missing_ok=True)


def mount(place: Path, options: str) -> None:
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs the right to mount a small file system: {error}")


def unmount(place: Path) -> None:
    subprocess.run(["umount", str(place)], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path) -> Iterator[SmallDisk]:
    place = tmp_path / "disk"
    mount(place, "size=4m")
    try:
        yield SmallDisk(place)
    finally:
        unmount(place)


@pytest.fixture(scope="module")
def whole() -> np.ndarray:
    return np.asarray(fitted(blobs(N)).credal_partition_.mass)


class TestFullDisk:
    def values(self, tmp_path) -> dict:
        data_file(tmp_path, blobs(N))
        return {**config(tmp_path), "folder": str(tmp_path / "disk/job")}

    @pytest.mark.process
    def test_stops_with_a_sentence_and_goes_on_when_there_is_room(self, tmp_path, disk, whole):
        values = self.values(tmp_path)
        told = set()
        for room in (0, 8, 20, 40, 80, 160):
            disk.leave(room)
            with pytest.raises(JobError, match=r"disk is full|free on the disk") as error:
                quick(values)
            told.add(str(error.value).split("(")[0])
        assert any("The disk is full" in sentence for sentence in told)
        disk.clear()
        np.testing.assert_array_equal(np.asarray(quick(values).partition.mass), whole)

    @pytest.mark.process
    def test_that_fills_up_while_it_sweeps(self, tmp_path, disk, whole):
        values = self.values(tmp_path)

        def fill(news) -> None:
            if news.stage == "fit" and news.sweep == 3:
                disk.leave(0)

        with pytest.raises(
            JobError, match=r"The disk is full .*Free some space and run the job again"
        ):
            quick(values, listen=[fill])
        before = stages(tmp_path / "disk/job")
        assert list(before) == ["load", "validate", "sample"]
        disk.clear()
        result = quick(values)
        np.testing.assert_array_equal(np.asarray(result.partition.mass), whole)
        assert {name: stages(result)[name] for name in before} == before


class TestNoRights:
    def test_to_write_the_folder(self, tmp_path):
        data_file(tmp_path)
        if os.geteuid() == 0:
            locked = tmp_path / "locked"
            mount(locked, "size=1m,ro")
            try:
                with pytest.raises(
                    JobError, match=r"No permission to write .*locked.*another folder"
                ):
                    run({**config(tmp_path), "folder": str(locked / "job")})
            finally:
                unmount(locked)
        else:
            (tmp_path / "locked").mkdir(mode=0o500)
            with pytest.raises(JobError, match=r"No permission to write .*locked.*another folder"):
                run({**config(tmp_path), "folder": str(tmp_path / "locked/job")})

    def test_to_read_the_data(self, tmp_path):
        if os.geteuid() == 0:
            pytest.skip("root may read everything")
        os.chmod(data_file(tmp_path), 0)
        with pytest.raises(JobError, match=r"No permission to write or read .*x.npy"):
            run(config(tmp_path))


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("edited")
    data_file(place)
    quick(config(place))
    return place


class TestEditedByHand:
    @pytest.fixture
    def folder(self, finished) -> Iterator[Path]:
        """The finished job; every file that a test changes is put back."""
        job = finished / "job"
        kept = {path: path.read_bytes() for path in job.rglob("*") if path.is_file()}
        yield finished
        for path, content in kept.items():
            path.write_bytes(content)

    def edit(self, path: Path, change) -> None:
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    @pytest.mark.parametrize(
        "change",
        [
            lambda m: m["stages"]["fit"]["outputs"].update(files=[]),
            lambda m: m["stages"].pop("fit"),
            lambda m: m["config"]["parameters"].update(n_clusters=4),
            lambda m: m.update(state="queued"),
            lambda m: m.pop("id"),
            lambda m: m.pop("seal"),
        ],
    )
    def test_a_manifest_is_refused(self, folder, change):
        self.edit(folder / "job/manifest.json", change)
        with pytest.raises(JobError, match=r"manifest.json were changed after .* new folder"):
            quick(config(folder))
        with pytest.raises(StoreError, match="were changed"):
            JobFolder.open(folder / "job")

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xff", b"{}" * 9])
    def test_a_manifest_that_is_none(self, folder, content):
        (folder / "job/manifest.json").write_bytes(content)
        with pytest.raises(JobError, match=r"manifest.json"):
            quick(config(folder))

    def test_a_manifest_of_another_version(self, folder):
        self.edit(folder / "job/manifest.json", lambda m: m.update(version=9))
        with pytest.raises(JobError, match="has version 9, this evdist reads version 1"):
            quick(config(folder))

    def test_no_manifest(self, tmp_path):
        with pytest.raises(StoreNotFoundError, match=r"no job at .*: it has no manifest.json"):
            JobFolder.open(tmp_path)

    def test_data(self, folder):
        values = {**config(folder, "again"), "data": {"url": str(folder / "job/data.zarr")}}
        chunk = next((folder / "job/data.zarr/X/c").glob("*/*"))
        chunk.write_bytes(chunk.read_bytes()[:-3])
        with pytest.raises(JobError, match=r"data.zarr is damaged: .*load the data again"):
            quick(values)

    def test_pairs(self, folder):
        """Pairs that were changed are not fitted to."""
        chunk = next((folder / "job/pairs.zarr/dissimilarity/c").glob("*/*"))
        chunk.write_bytes(chunk.read_bytes()[:-3])
        self.forget_from(folder, "fit")
        with pytest.raises(JobError, match=r"pairs.zarr.* is damaged"):
            quick(config(folder))

    def test_a_model(self, folder):
        self.edit(folder / "job/model.json", lambda m: m["fitted"].update(objective=0.0))
        np.save(folder / "new.npy", blobs()[:5])
        values = {
            "task": "predict",
            "folder": str(folder / "predict"),
            "model": str(folder / "job"),
            "data": {"url": str(folder / "new.npy")},
        }
        with pytest.raises(JobError, match=r"model.json were changed"):
            run(values)

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"evdist": "model"}'])
    def test_a_model_that_is_none(self, folder, content, tmp_path):
        (folder / "job/model.json").write_bytes(content)
        np.save(folder / "new.npy", blobs()[:5])
        values = {
            "task": "predict",
            "folder": str(tmp_path / "predict"),
            "model": str(folder / "job"),
            "data": {"url": str(folder / "new.npy")},
        }
        with pytest.raises(JobError, match=r"model"):
            run(values)

    @pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff"])
    def test_news_that_are_none_are_no_news(self, folder, content):
        (folder / "job/progress.json").write_bytes(content)
        assert JobFolder.open(folder / "job").progress() is None

    def test_masses_that_are_lost(self, folder):
        """Summarised again, they are looked at."""
        next((folder / "job/masses.zarr/mass/c").glob("*/*")).unlink()
        self.forget_from(folder, "summarise")
        with pytest.raises(JobError, match=r"masses.zarr"):
            quick(config(folder))

    def forget_from(self, folder: Path, stage: str) -> None:
        job = JobFolder.open(folder / "job")
        names = list(job.stages)
        for name in names[names.index(stage) :]:
            del job._manifest.stages[name]
        job._write()
