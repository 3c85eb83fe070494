"""docs/first_ten_minutes.md from its first line to its last: examples, commands, the report."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import sync_playwright
from report_pages import place
from typer.testing import CliRunner

from evdist import ECM, EVCLUS
from evdist.features import TableEncoder
from evdist.metrics import adjusted_rand_index
from evdist.service.cli.app import app

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def followed(root: Path, tmp_path_factory) -> Path:
    """A folder in which everything was done that the page says, in its order."""
    folder = tmp_path_factory.mktemp("ten")
    text = (root / "docs/first_ten_minutes.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(pycon|console)\n(.*?)^```", text, re.M | re.S)
    values: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for number, (kind, block) in enumerate(blocks):
            if kind == "pycon":
                session = doctest.DocTestParser().get_doctest(block, values, "page", None, number)
                report: list[str] = []
                runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
                failed = runner.run(session, out=report.append, clear_globs=False).failed
                assert failed == 0, "".join(report)
                values = session.globs
            for line in re.findall(r"^\$ (.*)", block, re.M) if kind == "console" else ():
                word, *options = shlex.split(line, comments=True)
                if word == "evdist":
                    result = CliRunner().invoke(app, options)
                    assert result.exit_code == 0, result.output
    return folder


def test_all_of_it_works(followed):
    there = {path.name for path in followed.iterdir()}
    assert {"customers.csv", "answer.csv", "new.csv", "customers.html", "jobs"} <= there


@pytest.mark.parametrize("method", [EVCLUS, ECM])
def test_its_table_is_clustered_well(followed, method):
    """As the page says: an ARI of .95, most are sure, hardly an outlier, with any random state."""
    table = pd.read_csv(followed / "customers.csv", index_col="customer")
    # The three kinds, as the page drew them.
    kind = np.random.default_rng(0).integers(0, 3, 200)
    rows = TableEncoder().fit_transform(table[["age", "spent", "city"]])
    for seed in range(3):
        partition = method(3, random_state=seed).fit(rows).credal_partition_
        decisions = partition.decide()
        assert adjusted_rand_index(partition, kind) >= 0.95
        assert decisions.outlier.mean() <= 0.15
        assert decisions.sure.mean() >= 0.60


def test_its_report_can_be_used_in_a_browser(followed):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium), which is absent")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"file://{followed / 'customers.html'}")
        page.fill("#object-search", "c007")
        assert page.locator("#object-list tbody th").all_inner_texts() == ["c007"]
        page.wait_for_selector("canvas[data-view]")
        page.mouse.move(*place(page, "c007"))
        told = page.locator("#object-tip").inner_text()
        assert told.startswith("c007") and "city\n–" in told, "as it stands in the table: missing"
        page.fill("#object-search", "")
        page.locator("#object-list th", has_text="age").locator("button").click()
        ages = page.locator("#object-list tbody td:nth-child(8)").all_inner_texts()
        assert [float(age) for age in ages] == sorted(float(age) for age in ages)
        browser.close()
