"""Blocks of the pages that are no sessions: commands, scripts and configurations are run too.

`tests/test_docs.py` runs the sessions (``pycon``), `tests/doors/test_doors_ten_minutes.py` a whole
page. What a command prints is compared with the page word by word; numbers are those of a machine.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from evdist import JobConfig
from evdist.service.cli import out
from evdist.service.cli.app import app

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
ROOT = Path(__file__).resolve().parents[1]
#: Programs that need a registry, a cluster or a server; the tests of deploy/ and helm/ run them.
ELSEWHERE = {"docker", "kubectl", "helm", "for", "cat", "export", "dask", "prefect", "make", "pip"}
ELSEWHERE |= {"python", "env", "EVDIST_SOURCE=$PWD"}
COMMAND_PAGES = ["README.md", "docs/cli.md", "docs/kubernetes.md", "docs/service.md"]
COMMAND_PAGES += ["docs/sizing.md"]
SCRIPT_PAGES = [
    "README.md",
    "docs/evclus.md",
    "docs/family.md",
    "docs/gpu.md",
    "docs/kubernetes.md",
]
SCRIPT_PAGES += ["docs/index.md", "docs/mixtures.md", "docs/nnevclus.md", "docs/gallery.md"]
#: What a page names and no test machine has.
STANDS_FOR = {
    'device="cuda"': 'device="cpu"',
    '"tcp://scheduler:8786"': "SCHEDULER",
    '"s3://BUCKET/evdist", "https://prefect.example.org/api", deployment="cluster/evdist-k8s"': "",
}


def blocks(page: str, kind: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.M | re.S)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the tables that the pages name: 140 irises, and ten more."""
    iris = load_iris(as_frame=True)
    flowers = iris.data.assign(species=np.array(iris.target_names)[iris.target])
    new = flowers.index % 15 == 0
    flowers[~new].to_csv(tmp_path / "flowers.csv", index=False)
    flowers[new].to_csv(tmp_path / "new.csv", index=False)
    flowers[~new].drop(columns="species").to_parquet(tmp_path / "flowers.parquet")
    flowers[new].drop(columns="species").to_parquet(tmp_path / "new.parquet")
    flowers.drop(columns="species").to_parquet(tmp_path / "objects.parquet")
    return tmp_path


def commands(page: str) -> list[tuple[list[str], str]]:
    """The words of each command of a page, and what the page says that it prints."""
    found = []
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            line, _, said = part.replace("\\\n", " ").partition("\n")
            found.append((shlex.split(line, comments=True), said))
    return found


def words(text: str) -> str:
    """A text without numbers, paths and spaces: what is the same on every machine."""
    return " ".join(re.sub(r"\S*[\d/]\S*", "#", text).split())


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_commands_print_what_the_page_says(
    page: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("EVDIST_STORAGE", str(place / "storage"))
    monkeypatch.setattr(out._out, "_width", 200)  # tables in one line each
    job = ""
    for (program, *options), said in commands(page):
        if program in ELSEWHERE:
            continue
        assert program == "evdist", program
        options = [re.sub(r"^evclus-[0-9a-f]{12}$", job, word) for word in options]
        result = CliRunner().invoke(app, options)
        assert result.exit_code in (0, 1), result.output
        assert (result.exit_code == 1) == said.startswith("evdist:"), result.output
        if options[0] == "submit":
            job = re.findall(r"evclus-[0-9a-f]{12}", result.stdout)[0]
        if said.strip():
            pattern = re.escape(words(said)).replace(r"\.\.\.", ".*")
            assert re.fullmatch(
                pattern, words(result.stderr if result.exit_code else result.stdout)
            )


@pytest.mark.parametrize("page", SCRIPT_PAGES)
def test_scripts_run(
    page: str, place: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("EVDIST_STORAGE", str(place / "storage"))
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(at, 0.4, size=(60, 2)) for at in [(0, 0), (6, 0), (0, 6)]])
    code = "\n".join(blocks(page, "python"))
    values: dict[str, object] = {"X": X, "X_new": X[:5], "counts": np.ones(len(X))}
    values["counts_of_replicates"] = np.ones((2, len(X)))
    if "tcp://scheduler" in code:
        values["SCHEDULER"] = request.getfixturevalue("two_workers").scheduler.address
    if page == "docs/gpu.md":
        values["client"] = request.getfixturevalue("two_workers")
        code = "from evdist import EVCLUS, Bootclus\n" + code
    if page == "docs/evclus.md":
        code = "from evdist import EVCLUS\n" + code
    for there, here in STANDS_FOR.items():
        code = code.replace(there, here)
    assert code.strip()
    exec(compile(code, page, "exec"), values)
    if page == "docs/evclus.md":
        # Else it stays Dask's default in this process, and works for tests that know nothing of it.
        values["client"].close()  # type: ignore[attr-defined]


def test_the_configuration_of_a_job_can_be_read() -> None:
    (text,) = blocks("docs/service.md", "yaml")
    assert JobConfig.of(yaml.safe_load(text)).parameters["n_clusters"] == 3


def test_other_configurations_are_yaml() -> None:
    assert all(yaml.safe_load(text) for text in blocks("docs/kubernetes.md", "yaml"))


def test_every_block_of_a_known_kind_is_run_by_one_of_these_tests() -> None:
    pages = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")]
    pages += ["README.md"]
    whole = {"docs/first_ten_minutes.md"}
    assert {page for page in pages if blocks(page, "console")} <= {*COMMAND_PAGES, *whole}
    assert {page for page in pages if blocks(page, "python")} <= {*SCRIPT_PAGES, *whole}
    yaml_pages = {page for page in pages if blocks(page, "yaml")}
    assert yaml_pages <= {"docs/service.md", "docs/kubernetes.md"}
    kinds = {
        kind
        for page in pages
        for kind in re.findall(r"^```(\w+)\n", (ROOT / page).read_text(encoding="utf-8"), re.M)
    }
    assert kinds <= {"pycon", "python", "console", "yaml", "text", "mermaid"}
