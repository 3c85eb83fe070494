"""The report is one complete, self-contained, safe HTML file."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stdout
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import dask.array as da
import numpy as np
import pandas as pd
import pytest

from evdist import CredalPartition, FocalSets, demo
from evdist.partition.decisions import DECISIONS
from evdist.report import page, render_report, write_report
from evdist.report.facts import collect, duration, plain
from evdist.report.objects import DRAWN, LAID_OUT, places
from evdist.sketch.pairs import PairDensity

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
    assert page.text.index("what the clusters are") < page.text.index("Details")


def test_of_many_clusters_some_cards_open_on_a_click():
    many = CredalPartition.from_labels(np.arange(60) % 20)
    found = Page(render_report(many))
    assert len(found.all("article")) == 20
    assert "8 more clusters" in found.text


def test_hostile_text_is_shown_as_text(full):
    assert full.all("script") == [{"type": "application/json", "id": "object-data"}, {}]
    assert (
        full.text.count("<script>alert('x')</script>") == 8
    )  # title and h1, a pair, a curve, three more


def test_nothing_is_loaded_from_elsewhere(full):
    for _, attrs in full.tags:
        for name in ("src", "href", "srcset", "action", "data"):
            assert (attrs.get(name) or "data:").startswith("data:")
    assert full.all("link") == []


def test_no_address_stands_anywhere_in_the_file(partition, X):
    text = render_report(partition, X=X)
    assert not re.search(r"https?://|url\(|@import", text)


def test_figures_are_whole_svg_in_the_colours_of_the_page(partition, X):
    text = render_report(partition, X=X, history=[2.0, 1.0], shepard=([0.1, 0.9], [0.2, 0.8]))
    drawings = re.findall(r"<svg.*?</svg>", text, re.S)
    assert len(drawings) == 7
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        assert len(root.attrib["aria-label"]) > 20
        assert root.attrib["role"] == "img"
        assert not re.search(r"#[0-9a-f]{6}|rgb", drawing), "a colour that does not follow the page"


def test_no_figure_needs_matplotlib(partition, X):
    """It takes a second to load."""
    code = (
        "import sys, numpy as np\nfrom evdist import CredalPartition\n"
        "from evdist.report import render_report\n"
        "render_report(CredalPartition.from_labels(np.arange(90) % 3),"
        " X=np.random.default_rng(0).normal(size=(90, 5)), history=[2.0, 1.0],"
        " shepard=([0.1, 0.9], [0.2, 0.8]))\n"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_part_is_there(full):
    for part in (
        *("Objects", "Details", "Clusters", "Where the belief lies", "Most uncertain objects"),
        *("Scores", "Parameters", "Timings", "second note", "0.9877", "1e-05", "1 min 15 s"),
        *("80 objects in 3 clusters:", "N* =", "total", "Nonspecificity", "Masses", "Sizes"),
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
    named = [attrs.get("aria-labelledby") for attrs in full.all("section")]
    assert {name for name in named if name} <= set(ids) and named.count(None) == 1
    assert "prefers-color-scheme: dark" in render_report(partition)


def test_the_numbers_are_those_of_the_partition(partition, full):
    summary = partition.summary()
    assert summary.level == 1.0
    assert "Too many objects are undecided to call any of them sure." in full.text
    assert (
        f"{summary.n_between} ({100 * summary.n_between / 80:.1f} %) between several" in full.text
    )
    assert f"{summary.n_outliers} (" in full.text and "far from all (outliers)." in full.text
    assert f"N* = {partition.nonspecificity():.3f}" in full.text


def test_the_answer_stands_in_three_sentences(partition, X):
    sets = [[0, 1, 0, 0, 0]] * 30 + [[0, 0, 1, 0, 0]] * 20 + [[0, 0, 0, 1, 0]] * 9
    sets += [[0.1, 0.5, 0.4, 0, 0]] * 4 + [[0.9, 0.1, 0, 0, 0]]
    partition = CredalPartition(np.array(sets, dtype=float), FocalSets.simple(3))
    X = pd.DataFrame({"age": np.arange(64.0) + 0.5})
    text = render_report(partition, X=X)
    sentences = re.findall(r"<p>(.*?)</p>", text[text.index('id="answer"') :])[:3]
    assert sentences == [
        "64 objects in 3 clusters: 59 (92.2 %) surely in one of them, 4 (6.2 %) between several, "
        "1 (1.6 %) far from all (outliers).",
        "The largest is cluster 0 with 34 objects (age low, 7.75 to 22.2), the smallest cluster 2 "
        "with 9 (age high, 52.5 to 56.5).",
        "Hardest to tell apart are clusters 0 and 1: 4 objects lie between them.",
    ]


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
    assert "3 objects in 2 clusters: all surely in one of them." in sure.text
    assert "No object lies between two clusters." in sure.text
    assert "None: all mass of every object is on one cluster" in sure.text
    assert "Parameters" not in sure.text
    assert len(sure.all("figure")) == 5


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
    assert "penguins: 344 of three species, 8 columns, 46 blanks" in said
    kinds = re.search(r"(\d+) sure, (\d+) between clusters, (\d+) outlier", said)
    assert sum(int(count) for count in kinds.groups()) == 344
    cards = re.findall(r"^  \{\d\} (\d+) penguins: \w", said, re.M)
    assert len(cards) == 3 and sum(map(int, cards)) == 344 - int(kinds[3])
    assert float(re.search(r"not shown: (\S+)", said).group(1)) > 0.85
    # The table lies beside the report, to try the command on.
    assert (folder / "penguins.csv").read_text(encoding="utf-8").startswith("penguin,species,")


def test_the_report_of_the_demo_shows_ids_categories_and_blanks(demo_run):
    text = (demo_run[1] / "report.html").read_text(encoding="utf-8")
    report = Page(text)
    for words in ("344 penguins of three species", "Gentoo ", "island", "Biscoe 100 %"):
        assert words in report.text
    assert "missing values are set to its median" in report.text
    data = TestObjects.data(text)
    assert data["kind"] == "neighbours" and "Adelie 1" in data["id"]
    assert data["columns"][0] == "island" and "species" not in data["columns"]
    shown = labels_of(text)
    (stress,) = (m.group(1) for t in shown if (m := re.search(r"pairs; stress (\S+)\.", t)))
    # The pairs of the diagram are those of the objective.
    metrics = json.loads((demo_run[1] / "job/metrics.json").read_text())
    assert stress == f"{metrics['objective']:.3g}"


def test_a_wrong_map_is_refused(partition):
    with pytest.raises(ValueError, match="one row for each of the 80 objects"):
        render_report(partition, X=np.zeros((79, 3)), map="components")
    with pytest.raises(ValueError, match="X must hold the 80 objects"):
        places(np.zeros((79, 3)), 80, np.arange(5))
    with pytest.raises(ValueError, match=r"map must be .*'sphere'"):
        render_report(partition, X=np.zeros((80, 3)), map="sphere")


class TestObjects:
    """What the page's own script reads."""

    def test_coordinates_of_the_map_may_be_those_of_another_method(self, partition, X):
        places = np.arange(2.0 * len(X)).reshape(-1, 2)
        here = self.data(render_report(partition, X=X))
        there = self.data(render_report(partition, X=X, coordinates=places))
        assert there["x"][:3] == [0, 2, 4] and there["y"][:3] == [1, 3, 5]
        assert here["x"] != there["x"] and here["values"] == there["values"]
        assert (here["kind"], there["kind"]) == ("neighbours", "columns")
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
        texts = [data["open"]["texts"][code] for code in data["open"]["codes"]]
        assert texts == frame["open"].tolist()
        np.testing.assert_allclose(data["probability"], frame["probability"], atol=6e-4)
        assert data["columns"] == [f"column {j}" for j in range(4)]

    def test_of_many_objects_a_sample_and_the_density_of_all(self):
        n = 2 * DRAWN
        X = np.random.default_rng(0).normal(size=(n, 2))
        labels = (X[:, 0] > 0).astype(int)
        data = self.data(render_report(CredalPartition.from_labels(labels), X=X))
        assert data["n"] == n and len(data["id"]) < DRAWN
        density = data["density"]
        wide, high = density["cells"]
        shade = np.frombuffer(base64.b64decode(density["shade"]), np.uint8).reshape(high, wide)
        usual = np.frombuffer(base64.b64decode(density["label"]), "<u2").reshape(high, wide)
        assert shade.max() == 255 and shade[high // 2, wide // 2] > 3 * shade[0].mean()
        here = shade > 0
        assert usual[:, : wide // 3][here[:, : wide // 3]].max() == 0
        assert usual[:, -wide // 3 :][here[:, -wide // 3 :]].min() == 1

    def test_four_columns_are_laid_out_and_three_are_not(self, partition, X):
        kinds = [self.data(render_report(partition, X=X[:, :d]))["kind"] for d in (2, 3, 4)]
        assert kinds == ["columns", "components", "neighbours"]
        assert self.data(render_report(partition, X=X, map="components"))["kind"] == "components"
        few = CredalPartition.from_labels(np.arange(40) % 2)
        assert self.data(render_report(few, X=X[:40]))["kind"] == "components"

    def test_neighbours_lie_together_on_a_layout(self):
        y = np.arange(300) % 3
        X = np.random.default_rng(0).normal(size=(300, 6)) + 20 * np.eye(6)[y]
        data = self.data(render_report(CredalPartition.from_labels(y), X=X))
        xy = np.column_stack([data["x"], data["y"]])
        middle = np.array([xy[y == k].mean(axis=0) for k in range(3)])
        away = np.linalg.norm(xy[:, None] - middle, axis=2)
        np.testing.assert_array_equal(away.argmin(axis=1), y)

    def test_of_very_many_objects_a_sample_is_laid_out_and_the_page_says_which(self, monkeypatch):
        monkeypatch.setattr("evdist.report.objects.LAID_OUT", 200)
        X, shown = np.random.default_rng(0).normal(size=(1000, 5)), np.arange(990, 1000)
        found = places(X, 1000, shown)
        assert 200 <= len(found.rows) <= 210 and np.isin(shown, found.rows).all()
        assert len(found.fair) == 200
        assert f"It shows {len(found.rows)} of 1,000 objects: 200 drawn at random" in found.note
        assert LAID_OUT == 10_000

    def test_a_long_value_is_cut_and_a_repeated_one_stands_once(self, partition):
        def look(rows):
            return ["city", "note"], [["Rome"] * len(rows), ["x" * 99] * len(rows)]

        data = self.data(render_report(partition, X=np.zeros((80, 2)), describe=look))
        assert data["values"][0] == {"texts": ["Rome"], "codes": [0] * 80}
        assert data["values"][1]["texts"] == ["x" * 39 + "…"]


@pytest.mark.parametrize(("n", "c"), [(20_000, 12), (6_000, 300)])
def test_no_page_is_large(n, c):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 9)), columns=[f"measure {j}" for j in range(9)])
    mass = rng.dirichlet(np.full(c + 2, 0.02), size=n)
    partition = CredalPartition(mass, FocalSets.simple(c), [f"client-{i:07}" for i in range(n)])
    page = render_report(partition, X=X, map="components")
    assert len(page.encode()) < 2_000_000


def test_of_many_clusters_the_largest_have_cards_and_the_table_has_all():
    found = Page(render_report(CredalPartition.from_labels(np.arange(1000) % 250)))
    assert len(found.all("article")) == 200
    assert "The 200 largest of 250 clusters have cards" in found.text
    assert sum("data-cluster" in attrs for attrs in found.all("tr")) == 250


def labels_of(text: str) -> list[str]:
    return [svg["aria-label"] for svg in Page(text).all("svg")]


def test_figures_and_tables_say_the_same(partition):
    facts = collect(partition)
    rows = [row for row in facts.clusters if row.number is not None]
    assert sum(row.labelled for row in facts.clusters) == partition.n_objects
    assert sum(row.sure for row in rows) == facts.summary.n_sure
    assert sum(row.possible for row in rows) >= facts.summary.n_sure + 2 * facts.summary.n_between
    shown = labels_of(render_report(partition))
    (sizes,) = [one for one in shown if one.startswith("Bar chart of the number")]
    (doubt,) = [one for one in shown if one.startswith("Bar chart of the mean")]
    for row in rows:
        assert f"cluster {row.number}: {row.sure} to {row.possible}" in sizes
        assert f"cluster {row.number}: {row.nonspecificity:.3f}" in doubt
        assert 0 <= row.in_none <= row.nonspecificity


def test_the_doubt_of_a_cluster_has_two_parts():
    mass = np.array([[0.4, 0.6, 0, 0], [0, 0, 0.6, 0.4]])
    first, second = collect(CredalPartition(mass, FocalSets.simple(2))).clusters[:2]
    assert (first.in_none, second.in_none) == (0.4, 0.0)
    assert (first.nonspecificity, second.nonspecificity) == (0.4, 0.4)


def test_ids_stand_at_the_axes(X):
    mass = np.random.default_rng(0).dirichlet(np.ones(8), size=30)
    ids = [f"client {i}" for i in range(30)]
    text = render_report(CredalPartition(mass, FocalSets.full(3), ids), X=X[:30])
    masses = next(one for one in re.findall(r"<figure.*?</figure>", text, re.S) if "Masses" in one)
    assert [f">{name}</text>" in masses for name in ids] == [True] * 30
    (image,) = [figure for figure in Page(text).all("figure") if "data-ids" in figure]
    assert sorted(json.loads(image["data-ids"])) == sorted(ids)
    assert "Object client " in Page(text).text


@pytest.mark.parametrize(
    ("n", "profile", "relations"),
    [
        (3, "all 3 objects", "for 3 objects"),
        (200, "the 20 most uncertain objects", "for 100 of 200 objects"),
        (700, "the 20 most uncertain objects", "for 100 of 700 objects"),
    ],
)
def test_masses_and_relations_are_drawn_of_as_many_objects_as_can_be_read(n, profile, relations):
    mass = np.random.default_rng(0).dirichlet(np.ones(4), size=n)
    shown = labels_of(render_report(CredalPartition(mass, FocalSets.full(2))))
    assert any(text.startswith("Bars of the masses") and profile in text for text in shown)
    assert any(relations in text for text in shown)


def test_where_all_are_sure_the_first_objects_are_drawn():
    shown = labels_of(render_report(CredalPartition.from_labels(np.arange(100) % 2)))
    assert any("the first 20 objects" in text for text in shown)


def test_one_object_has_no_relations():
    shown = labels_of(render_report(CredalPartition.from_labels([0])))
    assert len(shown) == 3
