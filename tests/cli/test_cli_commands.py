"""Every command: what it says to people, to machines, and by its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from typer.testing import CliRunner, Result

from evdist import CredalPartition, __version__
from evdist.service.cli.app import COMMANDS, app
from evdist.service.config import read_config
from evdist.service.jobs import JobFolder

QUICK = ["--set", "n_dissimilarities=20", "--set", "d0=5", "--set", "init=random", "-q"]


def evdist(*words: object) -> Result:
    """The command, in this process; a traceback is never an answer."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None:
        assert isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def fails(code: int, sentence: str, *words: object) -> None:
    result = evdist(*words)
    assert result.exit_code == code, result.output
    assert sentence in " ".join(result.output.split())


def answer(*words: object) -> object:
    """What a command says with --json."""
    result = evdist(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with data, and the job `a` that was run on them."""
    folder = tmp_path_factory.mktemp("cli")
    X, y = make_blobs(200, centers=3, random_state=1)
    frame = pd.DataFrame(X, columns=["x", "y"]).assign(kind=y, w=1.0, id=range(200))
    frame.to_csv(folder / "flowers.csv", index=False)
    np.save(folder / "x.npy", X)
    np.save(folder / "new.npy", X[:20] + 0.1)
    frame[:20].to_csv(folder / "new.csv", index=False)
    result = evdist("cluster", folder / "x.npy", "-c", 3, "-o", folder / "a", *QUICK)
    assert result.exit_code == 0, result.output
    return folder


class TestHelp:
    def test_names_every_command_and_the_exit_codes(self):
        text = evdist("--help").output
        assert all(command.__name__ in text for command in COMMANDS)
        assert "130 stopped" in " ".join(text.split())

    @pytest.mark.parametrize("command", [command.__name__ for command in COMMANDS])
    def test_of_every_command(self, command):
        result = evdist(command, "--help")
        assert result.exit_code == 0 and "Usage" in result.output

    def test_without_a_command(self):
        assert "Usage" in evdist().output

    def test_version(self):
        assert evdist("--version").output.strip() == f"evdist {__version__}"

    @pytest.mark.parametrize("words", [["clster"], ["cluster", "--clusters", "x"], ["inspect"]])
    def test_wrong_words_are_exit_code_2(self, words):
        assert evdist(*words).exit_code == 2


class TestCluster:
    def test_says_what_was_found(self, place):
        result = evdist("cluster", place / "x.npy", "-c", 3, "-o", place / "a", *QUICK)
        assert result.exit_code == 0
        assert "200 objects in 3 clusters:" in result.output
        assert "objective" in result.output and "report.html" in result.output

    def test_leaves_a_whole_job_folder(self, place):
        assert {"pairs.zarr", "masses.zarr", "metrics.json", "report.html"} <= {
            path.name for path in (place / "a").iterdir()
        }

    def test_for_machines(self, place):
        found = answer("cluster", place / "x.npy", "-c", 3, "-o", place / "a", *QUICK)
        assert found["n_objects"] == 200 and found["folder"] == str(place / "a")

    def test_columns_labels_weights_and_scale(self, place):
        found = answer(
            "cluster", place / "flowers.csv", "-c", 3, "-o", place / "b", "--drop", "id",
            "--label", "kind", "--weight", "w", "--scale", "standard", "--seed", 4,
            "--title", "Flowers", *QUICK,
        )  # fmt: skip
        assert found["adjusted_rand_index"] > 0.5
        config = JobFolder.open(place / "b").config
        assert config.data.drop == ["id"] and config.parameters["random_state"] == 4
        assert config.parameters["d0"] == 5 and config.title == "Flowers"

    def test_from_a_file_with_options_that_replace_its_keys(self, place):
        job = {
            "folder": str(place / "c"),
            "data": {"url": str(place / "flowers.csv"), "columns": ["x", "y"]},
            "parameters": {"n_clusters": 2, "n_dissimilarities": 20, "d0": 5.0, "init": "random"},
        }
        (place / "job.json").write_text(json.dumps(job))
        found = answer("cluster", "--config", place / "job.json", "-c", 3)
        assert found["n_clusters"] == 3
        parameters = JobFolder.open(place / "c").config.parameters
        assert parameters == {**job["parameters"], "n_clusters": 3}

    def test_tells_warnings_beside_the_answer(self, place):
        X = np.load(place / "x.npy")
        np.save(place / "twice.npy", np.concatenate([X, X[:1]]))
        result = evdist("cluster", place / "twice.npy", "-c", 3, "-o", place / "twice", *QUICK)
        assert "warning: 1 of 201 objects are copies" in result.stderr

    @pytest.mark.parametrize(
        ("words", "code", "sentence"),
        [
            (["{}/no.npy", "-c", 3, "-o", "{}/z1"], 3, "There is no data at"),
            (["{}/x.npy", "-o", "{}/z2"], 2, "parameters.n_clusters is missing"),
            (["{}/x.npy", "-c", 3], 2, "--out FOLDER"),
            ([], 2, "evdist cluster DATA -c 3 --out FOLDER"),
            (["{}/x.npy", "-c", 3, "-o", "{}/z", "--set", "tool=1"], 2, "did you mean 'tol'"),
            (["{}/x.npy", "-c", 3, "-o", "{}/z", "--set", "tol"], 2, "--set needs NAME=VALUE"),
            (["{}/x.npy", "-c", 3, "-o", "{}/z", "--set", "tol=NaN"], 2, "must be a finite"),
            (["{}/x.npy", "-c", 3, "-o", "{}/z", "-a", "evclu"], 2, "did you mean 'evclus'"),
            (["{}/x.npy", "-c", 4, "-o", "{}/a"], 1, "folder of another job"),
            (["{}/x.npy", "-c", 999, "-o", "{}/z3"], 1, "There are 200 objects, but 999"),
            (["{}/flowers.csv", "-c", 3, "-o", "{}/z4", "--label", "q"], 1, "no column 'q'"),
            (["{}/x.npy", "-c", 3, "-o", "{}/x.npy"], 1, "is a file, not a folder"),
            (["--config", "{}/no.yaml"], 2, "Cannot read"),
        ],
    )
    def test_mistakes_are_a_sentence_and_a_code(self, place, words, code, sentence):
        fails(code, sentence, "cluster", *[str(word).format(place) for word in words])

    def test_mistakes_for_machines(self, place):
        result = evdist("cluster", place / "no.npy", "-c", 3, "-o", place / "z6", "--json")
        told = json.loads(result.stdout)
        assert result.exit_code == told["exit_code"] == 3 and "no data" in told["error"]


class TestOtherTasks:
    def test_predict(self, place):
        found = answer("predict", place / "a", place / "new.npy", "-o", place / "p")
        assert found["n_objects"] == 20 and found["task"] == "predict"
        fails(3, "no finished model", "predict", place, place / "new.npy", "-o", place / "q")

    def test_append_once(self, place):
        words = ("append", place / "b2", place / "new.npy", "-o", place / "app", "-q")
        evdist("cluster", place / "x.npy", "-c", 3, "-o", place / "b2", "--seed", 1, *QUICK)
        for _ in range(2):
            assert evdist(*words).exit_code == 0
        assert CredalPartition.load(place / "b2/masses.zarr").n_objects == 220

    def test_select(self, place):
        words = ("select", place / "x.npy", "-o", place / "s", "-c", "2-3", *QUICK)
        found = answer(*words)
        assert [row["n_clusters"] for row in found["selection"]["candidates"]] == [2, 3]
        text = evdist(*words).output
        assert f"best: {found['selection']['best']} clusters" in text
        fails(2, "--clusters needs LOW-HIGH", "select", place / "x.npy", "-o", "s", "-c", "5-2")

    def test_combine(self, place):
        inputs = (place / "a", place / "a/masses.zarr")
        found = answer("combine", *inputs, "-o", place / "both", "--set", "n_clusters=3")
        assert found["n_clusters"] == 3
        fails(2, "did you mean 'rule'", "combine", *inputs, "-o", "x", "--set", "rul=average")


class TestLook:
    def test_report(self, place, tmp_path):
        assert evdist("report", place / "a", "-o", tmp_path / "r.html").exit_code == 0
        assert (tmp_path / "r.html").read_bytes() == (place / "a/report.html").read_bytes()
        made = answer("report", place / "a/masses.zarr", "-o", tmp_path / "m.html")
        assert Path(made["report"]).stat().st_size > 10_000
        fails(3, "no credal partition", "report", tmp_path / "none", "-o", tmp_path / "n.html")

    @pytest.mark.parametrize(
        ("what", "said"),
        [
            ("a", "job evclus-"),
            ("a/masses.zarr", "credal partition"),
            ("a/data.zarr", "data set"),
            ("a/pairs.zarr", "pair store"),
        ],
    )
    def test_inspect(self, place, what, said):
        assert said in answer("inspect", place / what)["what"]
        assert said in evdist("inspect", place / what).output

    def test_describe(self, place, tmp_path):
        found = answer("describe", place / "a")
        assert found["n_objects"] == 200
        assert found == json.loads((place / "a" / "clusters.json").read_text())
        told = evdist("describe", place / "a").output
        assert "attribute 0" in told
        assert all(card["headline"] in " ".join(told.split()) for card in found["clusters"])
        words = pd.DataFrame({"w": ["some words"] * 200, "age": np.arange(200) ** 2.0})
        words.to_csv(tmp_path / "words.csv", index=False)
        other = answer("describe", place / "a" / "masses.zarr", "--data", tmp_path / "words.csv",
                       "--text", "w")  # fmt: skip
        assert other["clusters"][0]["words"] == ["words"]

    def test_describe_what_cannot_be(self, place, tmp_path):
        fails(3, "nothing at", "describe", tmp_path / "none")
        fails(2, "give both", "describe", place / "a", "--text", "w")
        fails(1, "one row for each of the 200 objects", "describe", place / "a", "--data",
              place / "new.csv")  # fmt: skip

    def test_inspect_what_is_none(self, place, tmp_path):
        fails(3, "nothing at", "inspect", tmp_path / "none")
        fails(1, "", "inspect", place / "x.npy")
        (tmp_path / "manifest.json").write_text("{}")
        fails(1, "manifest.json", "inspect", tmp_path)

    def test_doctor(self, tmp_path):
        checks = answer("doctor", "--storage", tmp_path / "s")
        assert {"evdist", "numpy", "zarr", "machine", "storage"} <= {one["what"] for one in checks}
        text = " ".join(evdist("doctor", "--storage", tmp_path).output.split())
        assert "can be written and read" in text

    def test_doctor_finds_what_is_wrong(self, tmp_path):
        (tmp_path / "file").write_text("")
        fails(1, "Not in order: storage.", "doctor", "--storage", tmp_path / "file")
        nobody = "http://127.0.0.1:9/api"
        fails(1, "does not answer", "doctor", "--storage", tmp_path, "--api-url", nobody)

    def test_demo(self, tmp_path):
        assert evdist("demo", "-o", tmp_path / "demo").exit_code == 0
        assert (tmp_path / "demo/report.html").exists()


@pytest.mark.process
class TestSubmitted:
    def test_from_submit_to_fetch(self, place, tmp_path):
        here = ("--storage", tmp_path / "s")
        assert "no jobs yet" in evdist("status", *here).output
        words = ("submit", place / "x.npy", "-c", 3, *QUICK[:-1], *here)
        job = answer(*words, "--wait")
        assert job["status"] == "done"
        assert answer(*words)["id"] == job["id"], "found again"
        assert [row["id"] for row in answer("status", *here)] == [job["id"]]
        assert job["id"] in evdist("status", *here).output
        assert answer("status", job["id"], *here)["status"] == "done"
        assert "report: done" in evdist("logs", job["id"], *here).output
        for _ in range(2):
            assert evdist("fetch", job["id"], "-o", tmp_path / "f", *here).exit_code == 0
        assert {path.name for path in (tmp_path / "f").iterdir()} == {
            "masses.zarr", "metrics.json", "objects.parquet", "report.html",
        }  # fmt: skip
        assert CredalPartition.load(tmp_path / "f/masses.zarr").n_objects == 200
        fails(2, "is the folder of a job", "fetch", job["id"], "-o", place / "a", *here)
        assert "is done: nothing to stop" in evdist("cancel", job["id"], *here).output

    @pytest.mark.parametrize("command", ["status", "logs", "cancel"])
    def test_of_a_job_that_is_not_there(self, command, tmp_path):
        fails(3, "There is no job at", command, "nobody", "--storage", tmp_path)

    def test_that_is_not_done(self, tmp_path, place):
        job = {"folder": str(tmp_path / "s/jobs/a"), "data": {"url": str(place / "x.npy")}}
        (tmp_path / "job.json").write_text(json.dumps({**job, "parameters": {"n_clusters": 3}}))
        JobFolder.create(read_config(tmp_path / "job.json"))
        here = ("--storage", tmp_path / "s")
        assert evdist("status", "a", *here).exit_code == 4
        fails(1, "not done", "fetch", "a", "-o", tmp_path / "f", *here)

    def test_mistakes(self, tmp_path, place):
        here = ("--storage", tmp_path / "s")
        fails(3, "There is no file", "submit", tmp_path / "no.npy", "-c", 3, *here)
        fails(2, "n_clusters is missing", "submit", place / "x.npy", *here)
        (tmp_path / "file").write_text("")
        fails(1, "not a folder", "submit", place / "x.npy", "-c", 3, "--storage", tmp_path / "file")
