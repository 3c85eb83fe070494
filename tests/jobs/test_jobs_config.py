"""A configuration says what a job is; every mistake in one is told in a sentence."""

from __future__ import annotations

import datetime
import json
from copy import deepcopy

import numpy as np
import pytest
import yaml

from evdist import JobConfig
from evdist.registry import ALGORITHMS
from evdist.service.config import ConfigError, read_config

FLOWERS = {
    "folder": "jobs/flowers",
    "data": {"url": "flowers.csv", "scale": "standard"},
    "parameters": {"n_clusters": 3},
}


def flowers(**more) -> JobConfig:
    return JobConfig.of({**deepcopy(FLOWERS), **more})


def with_section(section: str, **more) -> JobConfig:
    values = deepcopy(FLOWERS)
    values.setdefault(section, {}).update(more)
    return JobConfig.of(values)


class TestOf:
    def test_takes_keys_or_a_mapping_or_both(self):
        assert JobConfig.of(**FLOWERS) == JobConfig.of(FLOWERS) == flowers()
        assert JobConfig.of(FLOWERS, folder="elsewhere").folder == "elsewhere"

    def test_has_defaults_for_all_that_a_small_job_needs_not_say(self):
        job = flowers()
        assert (job.version, job.task, job.algorithm) == (1, "cluster", "evclus")
        assert job.cluster.kind == "threads"

    def test_cannot_be_changed(self):
        with pytest.raises(ValueError, match=r"frozen"):
            flowers().folder = "elsewhere"

    def test_keeps_a_copy(self):
        values = deepcopy(FLOWERS)
        job = JobConfig.of(values)
        values["parameters"]["n_clusters"] = 99
        assert job.parameters == {"n_clusters": 3}

    def test_takes_numbers_of_numpy(self):
        job = flowers(parameters={"n_clusters": np.int64(3), "d0": np.float32(0.5)})
        assert job.parameters == {"n_clusters": 3, "d0": 0.5}
        assert type(job.parameters["n_clusters"]) is int
        assert job.fingerprint == flowers(parameters={"n_clusters": 3, "d0": 0.5}).fingerprint

    def test_comes_back_from_its_own_json(self):
        job = flowers(links={"must": [[0, 1]]}, tags=["a"], title="Flowers")
        assert JobConfig.of(json.loads(job.to_json())) == job


class TestUnknownKeys:
    @pytest.mark.parametrize(
        ("section", "key", "nearest"),
        [
            ("", "foldr", "folder"),
            ("", "paramaters", "parameters"),
            ("data", "colums", "columns"),
            ("data", "scal", "scale"),
            ("cluster", "adress", "address"),
            ("cluster", "n_worker", "n_workers"),
            ("links", "mustt", "must"),
        ],
    )
    def test_are_refused_with_the_nearest_valid_name(self, section, key, nearest):
        where = f"{section}.{key}" if section else key
        with pytest.raises(ConfigError, match=f"'{where}'.*did you mean '{nearest}'"):
            with_section(section, **{key: 1}) if section else flowers(**{key: 1})

    @pytest.mark.parametrize("name", sorted(ALGORITHMS))
    def test_so_are_those_of_every_algorithm(self, name):
        known = next(iter(ALGORITHMS[name].parameters.model_fields))
        wrong = known + "_"
        with pytest.raises(ConfigError, match=f"'{wrong}' of {name}: did you mean '{known}'"):
            flowers(algorithm=name, parameters={wrong: 3})

    @pytest.mark.parametrize("name", ["NNEVCLUS", "NN-EVCLUS", "nn_evclus", "nnevclus"])
    def test_an_algorithm_may_be_named_as_its_class_or_paper_does(self, name):
        assert flowers(algorithm=name) == flowers(algorithm="nnevclus")

    def test_an_algorithm_nobody_has(self):
        with pytest.raises(ConfigError, match=r"algorithm 'evclu': did you mean 'evclus'"):
            flowers(algorithm="evclu")

    def test_parameters_of_combine(self):
        with pytest.raises(ConfigError, match=r"'rul' of combine: did you mean 'rule'"):
            JobConfig.of(task="combine", folder="f", inputs=["a"], parameters={"rul": "average"})

    def test_names_that_are_near_to_none_get_the_list(self):
        with pytest.raises(ConfigError, match=r"'zzz': known are algorithm, .*version\."):
            flowers(zzz=1)

    @pytest.mark.parametrize("key", ["cls", "self", "values", "__class__", "model_config"])
    def test_names_of_python_are_names_like_any_other(self, key):
        with pytest.raises(ConfigError, match=f"Unknown key '{key}'"):
            JobConfig.of({**FLOWERS, key: 1})

    @pytest.mark.parametrize("name", ["checkpoint", "callbacks", "n_jobs"])
    def test_what_the_job_sets_by_itself(self, name):
        with pytest.raises(ConfigError, match=f"{name} is set by the job itself; leave it out"):
            flowers(parameters={"n_clusters": 3, name: 1})


class TestTypes:
    @pytest.mark.parametrize(
        ("parameter", "value", "sentence"),
        [
            ("n_clusters", "three", "n_clusters must be a valid integer or 'auto', got 'three'"),
            ("n_clusters", 2.5, "n_clusters must be a valid integer or 'auto', got 2.5"),
            ("n_clusters", True, "n_clusters must be a valid integer or 'auto', got True"),
            ("n_clusters", None, "n_clusters must be a valid integer or 'auto', got None"),
            ("n_clusters", 10**30, "n_clusters is too large a number"),
            ("tol", float("nan"), "tol must be a finite number, got nan"),
            ("tol", "small", "tol must be a valid number or 'auto', got 'small'"),
            ("d0", [1], "d0 must be a valid number or a valid string"),
            ("metric", 3, "metric must be a valid string, got 3"),
            ("random_state", "abc", "random_state must be a valid integer"),
            ("random_state", None, "random_state must be a valid integer"),
            ("random_state", -1, "random_state must be from 0 to"),
            ("init", [[0.5, 0.5]], "init must be a valid string"),
        ],
    )
    def test_of_parameters_are_those_of_the_estimator(self, parameter, value, sentence):
        with pytest.raises(ConfigError, match=sentence):
            flowers(parameters={"n_clusters": 3, parameter: value})

    @pytest.mark.parametrize("value", [0.5, 1, "q0.9", "auto"])
    def test_what_the_estimator_takes_is_taken(self, value):
        assert flowers(parameters={"n_clusters": 3, "d0": value}).parameters["d0"] == value

    @pytest.mark.parametrize(
        ("values", "sentence"),
        [
            ({"version": 2}, "version must be 1, got 2"),
            ({"task": "clster"}, "task must be 'cluster', 'predict', .*got 'clster'"),
            ({"folder": ""}, "folder must be .*at least 1 character"),
            ({"folder": 7}, "folder must be a valid string, got 7"),
            ({"data": "flowers.csv"}, r"data must be a section with keys \(url, columns, .*got"),
            ({"data": {}}, "'data.url' is missing"),
            (
                {"data": {"url": "a", "scale": "log"}},
                "data.scale must be 'standard', 'robust' or 'gower'",
            ),
            ({"data": {"url": "a", "columns": "b"}}, "data.columns must be a valid list"),
            ({"links": {"must": [[0, -1]]}}, r"links.must.0.1 must be greater .* 0, got -1"),
            ({"links": {"must": [[0, 1, 2]]}}, r"links.must.0"),
            ({"links": {"must": [["a", "b"]]}}, r"links.must.0.0 must be a valid integer"),
            ({"tags": "one"}, "tags must be a valid list, got 'one'"),
            ({"cluster": {"kind": "gpu"}}, "cluster.kind must be 'threads'"),
            ({"cluster": {"threads": 0}}, "cluster.threads must be greater than"),
            ({"parameters": [3]}, "parameters must be a valid dictionary"),
            ({"parameters": {3: 3}}, "Keys must be words, got 3 in parameters"),
        ],
    )
    def test_of_keys(self, values, sentence):
        with pytest.raises(ConfigError, match=sentence):
            JobConfig.of({**FLOWERS, **values})

    def test_several_mistakes_are_told_at_once(self):
        with pytest.raises(ConfigError, match=r"'data.colums'.*tags must be.*'foldr'"):
            flowers(foldr=1, tags=1, data={"url": "a", "colums": ["b"]})

    def test_but_not_a_hundred_of_them(self):
        with pytest.raises(ConfigError, match=r"\.\.\. and \d+ more") as error:
            flowers(**{f"key{i}": 1 for i in range(100)})
        assert len(str(error.value)) < 2000

    def test_long_values_are_cut_short(self):
        with pytest.raises(ConfigError, match=r"task must be") as error:
            flowers(task="x" * 100_000)
        assert len(str(error.value)) < 300


class TestTasks:
    @pytest.mark.parametrize(
        ("task", "keys", "sentence"),
        [
            ("cluster", {}, "needs the key 'data'"),
            ("predict", {"model": "m"}, "needs the key 'data'"),
            ("predict", {"data": {"url": "a"}}, "needs the key 'model'"),
            ("append", {"data": {"url": "a"}}, "needs the key 'model'"),
            ("select", {"candidates": [2]}, "needs the key 'data'"),
            ("combine", {}, "needs the key 'inputs'"),
            ("cluster", {"data": {"url": "a"}, "model": "m"}, "no use for the key 'model'"),
            ("cluster", {"data": {"url": "a"}, "candidates": [2]}, "no use for the key 'cand"),
            ("predict", {"data": {"url": "a"}, "model": "m", "start": "s"}, "no use .*'start'"),
            ("combine", {"inputs": ["a"], "data": {"url": "a"}}, "no use for the key 'data'"),
            ("cluster", {"data": {"url": "a"}}, "parameters.n_clusters is missing"),
            ("combine", {"inputs": ["a"]}, "parameters.n_clusters is missing"),
        ],
    )
    def test_need_some_keys_and_refuse_others(self, task, keys, sentence):
        with pytest.raises(ConfigError, match=sentence):
            JobConfig.of(task=task, folder="f", **keys)

    def test_a_prediction_has_the_parameters_of_its_model(self):
        with pytest.raises(ConfigError, match=r"takes its parameters from the model"):
            JobConfig.of(
                task="predict", folder="f", model="m", data={"url": "a"}, parameters={"tol": 1e-3}
            )

    def test_select_takes_the_numbers_of_clusters_from_one_place(self):
        with pytest.raises(
            ConfigError, match=r"from 'candidates'; leave out parameters.n_clusters"
        ):
            flowers(task="select", candidates=[2, 3])

    @pytest.mark.parametrize(
        ("values", "sentence"),
        [
            ({"data": {"url": "a", "columns": ["b"], "drop": ["c"]}}, "to use .* or to leave out"),
            ({"cluster": {"kind": "scheduler"}}, "address belongs to cluster.kind 'scheduler'"),
            ({"cluster": {"address": "tcp://a:1"}}, "address belongs to cluster.kind"),
            ({"cluster": {"tls_ca": "a.pem"}}, "tls_ca, tls_cert and tls_key belong together"),
            ({"cluster": {"n_workers": 2}}, "n_workers belongs to cluster.kind 'processes'"),
            ({"start": "s", "parameters": {"n_clusters": 3, "init": "random"}}, "start gives"),
            ({"parameters": {"n_clusters": 3, "metric": "pairs"}}, "data.scale is for attributes"),
        ],
    )
    def test_keys_that_do_not_go_together(self, values, sentence):
        with pytest.raises(ConfigError, match=sentence):
            JobConfig.of({**FLOWERS, **values})


class TestFingerprint:
    @pytest.mark.parametrize(
        "values",
        [
            {"folder": "elsewhere"},
            {"title": "Flowers"},
            {"tags": ["a", "b"]},
            {"cluster": {"kind": "processes", "n_workers": 7}},
            {"cluster": {"threads": 3}},
        ],
    )
    def test_ignores_what_does_not_decide_the_answer(self, values):
        assert flowers(**values).fingerprint == flowers().fingerprint

    @pytest.mark.parametrize(
        "values",
        [
            {"data": {"url": "other.csv", "scale": "standard"}},
            {"data": {"url": "flowers.csv"}},
            {"parameters": {"n_clusters": 4}},
            {"parameters": {"n_clusters": 3, "random_state": 1}},
            {"links": {"must": [[0, 1]]}},
            {"start": "jobs/yesterday"},
        ],
    )
    def test_counts_all_that_does(self, values):
        assert flowers(**values).fingerprint != flowers().fingerprint

    def test_is_the_same_in_every_run(self):
        order = dict(reversed(FLOWERS.items()))
        assert JobConfig.of(order).fingerprint == flowers().fingerprint
        assert len(flowers().fingerprint) == 64


TEXTS = {
    "job.json": json.dumps(FLOWERS),
    "job.yaml": yaml.safe_dump(FLOWERS),
    "job.yml": yaml.safe_dump(FLOWERS),
    "JOB.JSON": json.dumps(FLOWERS),
    "job.toml": (
        'folder = "jobs/flowers"\n[data]\nurl = "flowers.csv"\nscale = "standard"\n'
        "[parameters]\nn_clusters = 3\n"
    ),
}


class TestFiles:
    @pytest.mark.parametrize("name", TEXTS)
    def test_of_three_kinds_say_the_same(self, name, tmp_path):
        (tmp_path / name).write_text(TEXTS[name])
        assert read_config(tmp_path / name) == flowers()

    def test_keys_given_replace_those_in_the_file_and_leave_the_others(self, tmp_path):
        (tmp_path / "job.json").write_text(TEXTS["job.json"])
        job = read_config(
            tmp_path / "job.json", folder="b", parameters={"d0": 2.0}, data={"url": "c.csv"}
        )
        assert (job.folder, job.data.url, job.data.scale) == ("b", "c.csv", "standard")
        assert job.parameters == {"n_clusters": 3, "d0": 2.0}

    @pytest.mark.parametrize(
        ("name", "content", "sentence"),
        [
            ("job.json", b"{", "not valid JSON: .*line 1"),
            ("job.yaml", b"a: [", "not valid YAML"),
            ("job.toml", b"a = ", "not valid TOML"),
            ("job.json", b"[1, 2]", "must hold keys and values, got list"),
            ("job.yaml", b"", "must hold keys and values, got NoneType"),
            ("job.yaml", b"just words", "must hold keys and values, got str"),
            ("job.json", b"\xff\xfe", "not UTF-8 text: byte 0 is wrong"),
            ("job.txt", b"{}", r"must end in .json, .yaml or .toml, got .txt"),
            ("job", b"{}", "got no ending"),
        ],
    )
    def test_that_are_none(self, name, content, sentence, tmp_path):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError, match=sentence):
            read_config(tmp_path / name)

    def test_that_are_not_there(self, tmp_path):
        with pytest.raises(ConfigError, match=r"Cannot read .*no.json: No such file"):
            read_config(tmp_path / "no.json")

    def test_a_folder(self, tmp_path):
        (tmp_path / "job.json").mkdir()
        with pytest.raises(ConfigError, match=r"Cannot read .*job.json: Is a directory"):
            read_config(tmp_path / "job.json")

    def test_a_huge_file(self, tmp_path):
        with (tmp_path / "job.json").open("wb") as file:
            file.truncate(1 << 25)
        with pytest.raises(ConfigError, match=r"larger than 16 MiB: too large for a configuration"):
            read_config(tmp_path / "job.json")


class TestHostile:
    """Nothing in a file makes anything but plain values, and nothing costs more than its size."""

    @pytest.mark.parametrize(
        "text",
        [
            "!!python/object/apply:os.system ['touch made']",
            "folder: !!python/object/new:pathlib.Path [a]",
            "parameters: {n_clusters: !!python/name:os.system ''}",
            "folder: !!python/module:os",
            "data: !!binary aGVsbG8=",
            "folder: !unknown a",
        ],
    )
    def test_tags_make_no_objects(self, text, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "job.yaml").write_text(text)
        with pytest.raises(ConfigError, match=r"not valid YAML|must be a number, a word"):
            read_config("job.yaml")
        assert not (tmp_path / "made").exists()

    def test_aliases_do_not_multiply(self, tmp_path):
        lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
        (tmp_path / "job.yaml").write_text("\n".join(lines))
        with pytest.raises(ConfigError, match=r"Line 2 refers to &a0: write the value out"):
            read_config(tmp_path / "job.yaml")

    def test_a_value_within_itself(self, tmp_path):
        (tmp_path / "job.yaml").write_text("data: &a {url: *a}")
        with pytest.raises(ConfigError, match=r"refers to &a"):
            read_config(tmp_path / "job.yaml")
        circle: list = []
        circle.append(circle)
        with pytest.raises(ConfigError, match=r"too deep or too large"):
            flowers(parameters={"n_clusters": 3, "d0": circle})

    def test_values_that_share_parts(self):
        shared: list = ["x"] * 10
        for _ in range(9):
            shared = [shared] * 10
        with pytest.raises(ConfigError, match=r"too deep or too large"):
            flowers(title=shared)

    @pytest.mark.parametrize("kind", ["json", "yaml", "toml"])
    def test_deep_nesting(self, kind, tmp_path):
        deep = "[" * 20_000 + "]" * 20_000
        text = {"json": f'{{"tags": {deep}}}', "yaml": f"tags: {deep}", "toml": f"tags = {deep}"}
        (tmp_path / f"job.{kind}").write_text(text[kind])
        with pytest.raises(ConfigError, match=r"not valid|too deep"):
            read_config(tmp_path / f"job.{kind}")

    @pytest.mark.parametrize(
        "value",
        ["a\0b", "\ud800", b"bytes", {1, 2}, object(), datetime.date(2020, 1, 1), 1j, print],
    )
    def test_what_json_cannot_write(self, value):
        with pytest.raises(ConfigError, match=r"no text has|must be a number, a word"):
            flowers(title=value)

    def test_dates_of_yaml_and_toml(self, tmp_path):
        (tmp_path / "job.yaml").write_text("folder: 2020-01-01\ndata: {url: a}")
        with pytest.raises(ConfigError, match=r"folder must be a number.*got date.* in quotes"):
            read_config(tmp_path / "job.yaml")
        (tmp_path / "job.toml").write_text("folder = 2020-01-01T00:00:00Z")
        with pytest.raises(ConfigError, match=r"got datetime"):
            read_config(tmp_path / "job.toml")

    def test_huge_numbers_in_files(self, tmp_path):
        (tmp_path / "job.json").write_text(f'{{"version": {"9" * 5000}}}')
        with pytest.raises(ConfigError, match=r"not valid JSON"):
            read_config(tmp_path / "job.json")
        (tmp_path / "job.json").write_text('{"version": 1e999, "folder": "a"}')
        with pytest.raises(ConfigError, match=r"version must be a finite number, got inf"):
            read_config(tmp_path / "job.json")
