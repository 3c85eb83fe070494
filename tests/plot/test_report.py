"""The report is one complete, self-contained, safe HTML file."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from contextlib import redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import dask.array as da
import numpy as np
import pandas as pd
import pytest

from evdist import CredalPartition, FocalSets, demo, plot
from evdist.partition.decisions import DECISIONS
from evdist.plot import PairDensity
from evdist.report import page, render_report, write_report
from evdist.report.facts import collect, duration, plain
from evdist.report.objects import DRAWN

VOID = {"meta", "img", "br", "link", "input", "hr"}
HOSTILE = "<script>alert('x')</script> & \"quoted\" </title>"


class Page(HTMLParser):
    """Collects tags, and fails on a tag that is closed in the wrong place."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open and "script" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attrs for tag, attrs in self.tags if tag == name]


@pytest.fixture(scope="module")
def partition() -> CredalPartition:
    rng = np.random.default_rng(0)
    return CredalPartition(rng.dirichlet(np.full(8, 0.15), size=80), FocalSets.full(3))


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(80, 4))


@pytest.fixture(scope="module")
def full(partition, X) -> Page:
    """A report with everything in it, all texts hostile."""
    text = render_report(
        partition,
        X=X,
        title=HOSTILE,
        parameters={HOSTILE: HOSTILE, "n_clusters": 3, "d0": None, "tol": 1e-5},
        timings={"sweep" + HOSTILE: 75.2, "report": 0.25},
        history={HOSTILE: [2.0, 1.0, 0.5]},
        shepard=(np.linspace(0, 1, 50), np.linspace(0, 1, 50)),
        metrics={"score" + HOSTILE: 0.98765},
        notes=[HOSTILE, "second note"],
    )
    assert "<script>alert" not in text
    assert HOSTILE not in text
    return Page(text)


def test_the_first_screen_says_what_each_cluster_is(partition, X):
    frame = pd.DataFrame(X, columns=["age", "weight", HOSTILE, "size"])
    page = Page(render_report(partition, X=frame))
    said = partition.describe(frame)
    for card in said:
        assert " ".join(card.headline.split()) in page.text
        assert card.size in page.text
    assert page.text.index("What the clusters are") < page.text.index("Figures")


def test_of_many_clusters_some_cards_open_on_a_click():
    many = CredalPartition.from_labels(np.arange(60) % 20)
    found = Page(render_report(many))
    assert len(found.all("article")) == 20
    assert "8 more clusters" in found.text


def test_hostile_text_is_shown_as_text(full):
    assert full.all("script") == [{"type": "application/json", "id": "object-data"}, {}]
    assert full.text.count("<script>alert('x')</script>") == 7  # title and h1, a pair, three more


def test_nothing_is_loaded_from_elsewhere(full):
    for _, attrs in full.tags:
        for name in ("src", "href", "srcset", "action", "data"):
            assert (attrs.get(name) or "data:").startswith("data:")
    assert full.all("link") == []


def test_no_address_stands_anywhere_in_the_file(partition, X):
    text = render_report(partition, X=X)
    assert not re.search(r"https?://|url\(|@import", text)


def test_figures_are_whole_svg_images_without_outside_references(full):
    images = full.all("img")
    assert len(images) == 8
    for image in images:
        assert len(image["alt"]) > 20
        kind, data = image["src"].split(",")
        assert kind == "data:image/svg+xml;base64"
        root = ElementTree.fromstring(base64.b64decode(data))
        assert root.tag.endswith("svg")
        for node in root.iter():
            for name, value in node.attrib.items():
                if name.endswith("href"):
                    assert value.startswith(("#", "data:"))


def test_every_part_is_there(full):
    for part in (
        *("Summary", "Figures", "Clusters", "Where the belief lies", "Most uncertain objects"),
        *("Scores", "Parameters", "Timings", "second note", "0.9877", "1e-05", "1 min 15 s"),
        *("80 objects in 3 clusters.", "nonspecificity N*", "total"),
    ):
        assert part in full.text


def test_it_is_fit_for_phones_dark_rooms_and_screen_readers(full, partition):
    assert full.all("html") == [{"lang": "en"}]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in full.all(
        "meta"
    )
    assert all(attrs.get("scope") in ("row", "col") for attrs in full.all("th"))
    ids = [attrs["id"] for _, attrs in full.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {attrs["aria-labelledby"] for attrs in full.all("section")} <= set(ids)
    assert "prefers-color-scheme: dark" in render_report(partition)


def test_the_numbers_are_those_of_the_partition(partition, full):
    summary = partition.summary()
    assert summary.level == 1.0
    assert "(too many objects are undecided to be sure of any): none;" in full.text
    assert f"between clusters: {summary.n_between} (" in full.text
    assert f"outliers {summary.n_outliers} " in full.text
    assert f"{partition.nonspecificity():.3f}" in full.text


def test_the_most_uncertain_objects_come_first(partition):
    text = render_report(partition)
    section = text[text.index('id="uncertain"') :]
    rows = [int(row) for row in re.findall(r'<tr><th scope="row">(\d+)</th>', section)][:20]
    np.testing.assert_array_equal(rows, np.argsort(partition.margin(), kind="stable")[:20])
    assert re.search(r"between \{\d(,\d)+\}", section)
    best = int(np.argmax(partition.mass[rows[0]]))
    name, mass = partition.focal_sets.names[best], partition.mass[rows[0], best]
    assert f'<span class="mass">{name} {mass:.2f}' in section


def test_a_partition_alone_is_enough():
    sure = Page(render_report(CredalPartition.from_labels([0, 0, 1])))
    assert "Sure members of one cluster at level 0.73: all" in sure.text
    assert "None: all mass of every object is on one cluster" in sure.text
    assert "Parameters" not in sure.text
    assert len(sure.all("img")) == 5


@pytest.mark.parametrize("c", [1, 24])
def test_any_number_of_clusters_is_reported(c):
    partition = CredalPartition.from_labels(np.arange(48) % c, n_clusters=c)
    text = Page(render_report(partition, X=np.arange(48.0)[:, None])).text
    assert f"48 objects in {c} cluster" in text


def test_masses_on_dask_give_the_same_tables(partition):
    lazy = CredalPartition(da.from_array(partition.mass, chunks=(30, -1)), partition.focal_sets)
    assert Page(render_report(lazy)).text == Page(render_report(partition)).text


def test_pairs_may_come_as_a_density(partition):
    density = PairDensity().add([0.1, 0.9], [0.2, 0.8])
    text = render_report(partition, shepard=density)
    assert "of 2 pairs; stress 0.01" in text


def test_no_objects_no_report():
    empty = CredalPartition(np.zeros((0, 4)), FocalSets.simple(2))
    with pytest.raises(ValueError, match="at least one object"):
        render_report(empty)


# ---------------------------------------------------------------------- the file
def test_the_file_is_written_with_its_folder_and_replaces_an_older_one(tmp_path, partition):
    path = tmp_path / "new" / "report.html"
    assert write_report(path, partition, title="first") == path
    write_report(path, partition, title="second Ω")
    assert "<title>second Ω</title>" in path.read_text(encoding="utf-8")
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_leaves_the_older_report_and_nothing_else(tmp_path, partition, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("older")

    def full_disk(self, *args, **kwargs):
        self.touch()
        raise OSError("no space left")

    monkeypatch.setattr(page.Path, "write_text", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write_report(path, partition)
    assert path.read_text() == "older"
    assert list(tmp_path.iterdir()) == [path]


# ---------------------------------------------------------------------- words
@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0421, "0.042 s"),
        (12.34, "12.3 s"),
        (59.97, "1 min 00 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 05 min"),
    ],
)
def test_durations_are_readable(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "–"), (0.123456, "0.1235"), (1000000, "1,000,000"), (True, "True"), ("q0.9", "q0.9")],
)
def test_values_are_readable(value, words):
    assert plain(value) == words


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory) -> tuple[str, Path]:
    """What the demo prints, and the folder it writes to."""
    folder, said = tmp_path_factory.mktemp("demo") / "out", io.StringIO()
    with redirect_stdout(said):
        demo.main(["--out", str(folder)])
    return said.getvalue(), folder


def test_the_demo_says_what_it_found_and_where_to_look(demo_run):
    said, folder = demo_run
    assert str(folder / "report.html") in said
    assert str(folder / "partition.png") in said
    assert (folder / "partition.png").read_bytes().startswith(b"\x89PNG")
    assert "150 flowers" in said
    assert "EVCLUS: " in said
    assert "3 clusters" in said
    kinds = re.search(r"(\d+) sure members, (\d+) between clusters, (\d+) outlier", said)
    assert sum(int(count) for count in kinds.groups()) == 150
    assert float(re.search(r"known species: (\S+)", said).group(1)) > 0.85


def test_the_report_of_the_demo_shows_the_fit(demo_run):
    report = Page((demo_run[1] / "report.html").read_text(encoding="utf-8"))
    for words in (
        "Irises",
        "EVCLUS gives each flower masses",
        "focal_sets pairs",
        "found by 'auto'",
    ):
        assert words in report.text
    assert len(report.all("img")) == 8
    shown = [image["alt"] for image in report.all("img")]
    assert any(text.startswith("Curve of the objective") for text in shown)
    (stress,) = (m.group(1) for t in shown if (m := re.search(r"pairs; stress (\S+)\.", t)))
    # The pairs of the diagram are those of the objective.
    assert stress == f"{float(re.search(r'objective (0[.0-9]+)', demo_run[0]).group(1)):.3g}"


class TestObjects:
    """What the page's own script reads."""

    def test_coordinates_of_the_map_may_be_those_of_another_method(self, partition, X):
        places = np.arange(2.0 * len(X)).reshape(-1, 2)
        here = self.data(render_report(partition, X=X))
        there = self.data(render_report(partition, X=X, coordinates=places))
        assert there["x"][:3] == [0, 2, 4] and there["y"][:3] == [1, 3, 5]
        assert here["x"] != there["x"] and here["values"] == there["values"]
        with pytest.raises(ValueError, match="coordinates must have two columns"):
            render_report(partition, X=X, coordinates=places[:, :1])

    @staticmethod
    def data(text: str) -> dict:
        block = re.search(r'id="object-data">(.*?)</script>', text, re.S)
        return json.loads(block[1])

    def test_ids_and_values_are_text_that_cannot_end_the_script(self, X):
        ids = [f"{HOSTILE}{i}" for i in range(80)]
        mass = np.random.default_rng(0).dirichlet(np.full(8, 0.15), size=80)
        text = render_report(CredalPartition(mass, FocalSets.full(3), ids), X=X)
        assert "<script>alert" not in text
        assert self.data(text)["id"] == ids

    def test_only_the_pages_own_script_may_run_and_nothing_is_loaded(self, partition):
        text = render_report(partition)
        policy = re.search(r'Content-Security-Policy" content="(.*?)"', text)[1]
        script = re.search(r"<script>(.*?)</script>", text, re.S)[1]
        mark = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert "default-src &#39;none&#39;" in policy
        assert f"script-src &#39;sha256-{mark}&#39;" in policy

    def test_numbers_are_those_of_the_frame(self, partition, X):
        data, frame = self.data(render_report(partition, X=X)), partition.to_frame()
        assert data["label"] == frame["label"].tolist()
        assert [DECISIONS[code] for code in data["decision"]] == frame["decision"].tolist()
        assert data["open"] == frame["open"].tolist()
        np.testing.assert_allclose(data["probability"], frame["probability"], atol=6e-4)
        assert data["columns"] == [f"column {j}" for j in range(4)]

    def test_of_many_objects_a_sample_and_the_density_of_all(self):
        n = 2 * DRAWN
        X = np.random.default_rng(0).normal(size=(n, 2))
        data = self.data(render_report(CredalPartition.from_labels(np.arange(n) % 3), X=X))
        assert data["n"] == n and len(data["id"]) < DRAWN
        assert len(data["density"]["cells"]) == len(data["density"]["cells"][0])


def test_chart_and_table_say_the_same_nonspecificity(partition):
    rows = collect(partition).clusters
    ax = plot.nonspecificity(partition)
    ends = [text.get_text() for text in ax.texts]
    assert [f"{row.nonspecificity:.3f}" for row in rows] == ends
    assert sum(row.labelled for row in rows) == partition.n_objects


def test_chart_table_and_words_count_the_same_sure_members(partition):
    facts = collect(partition)
    rows = [row for row in facts.clusters if row.number is not None]
    assert sum(row.sure for row in rows) == facts.summary.n_sure
    assert sum(row.possible for row in rows) >= facts.summary.n_sure + 2 * facts.summary.n_between
    ax = plot.sizes(partition, level=facts.answer)
    sure = [bar.get_width() for bar in ax.patches if bar.get_gid() == "sure"]
    assert sure == [row.sure for row in rows]


def alts(text: str) -> list[str]:
    return [image["alt"] for image in Page(text).all("img")]


@pytest.mark.parametrize(
    ("n", "profile", "relations"),
    [
        (3, "all 3 objects", "for 3 objects"),
        (200, "the 20 most uncertain objects", "for 200 objects"),
        (700, "the 20 most uncertain objects", "for 300 of 700 objects"),
    ],
)
def test_masses_and_relations_are_drawn_of_as_many_objects_as_can_be_read(n, profile, relations):
    mass = np.random.default_rng(0).dirichlet(np.ones(4), size=n)
    shown = alts(render_report(CredalPartition(mass, FocalSets.full(2))))
    assert any(text.startswith("Curves of the masses") and profile in text for text in shown)
    assert any(relations in text for text in shown)


def test_where_all_are_sure_the_first_objects_are_drawn():
    shown = alts(render_report(CredalPartition.from_labels(np.arange(100) % 2)))
    assert any("the first 60 objects" in text for text in shown)


def test_one_object_has_no_relations():
    shown = alts(render_report(CredalPartition.from_labels([0])))
    assert len(shown) == 3
