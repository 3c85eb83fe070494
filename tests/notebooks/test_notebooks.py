"""The notebooks run from top to bottom, and are kept with what they show, but no private paths."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / name, as_version=4)


def test_there_are_notebooks():
    assert {"quickstart.ipynb", "constraints.ipynb"} <= set(NOTEBOOKS)


@pytest.mark.process
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_runs_from_top_to_bottom(name, tmp_path):
    notebook = read(name)
    client = NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()  # raises on the first cell that fails
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    assert [out for out in outputs if out.output_type == "error"] == []
    assert any("image/png" in out.get("data", {}) for out in outputs)
    warned = [out.text for out in outputs if "Warning" in out.get("text", "")]
    assert warned == []


@pytest.mark.parametrize("name", NOTEBOOKS)
class TestKept:
    def test_with_what_they_show(self, name):
        """Written by notebooks/execute.py, in one run from top to bottom."""
        code = [cell for cell in read(name).cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
        outputs = [out for cell in code for out in cell.outputs]
        assert not any(out.output_type == "error" for out in outputs)
        assert any("image/png" in out.get("data", {}) for out in outputs)

    def test_small_enough_to_be_read_here(self, name):
        assert (FOLDER / name).stat().st_size < 200_000

    def test_without_absolute_paths(self, name):
        text = (FOLDER / name).read_text(encoding="utf-8")
        roots = [f"/{folder}/" for folder in ("home", "work", "tmp", "root")]
        assert [root for root in (*roots, "C:\\") if root in text] == []

    def test_as_nbformat_writes_it(self, name):
        notebook = read(name)
        nbformat.validate(notebook)
        assert (FOLDER / name).read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n"

    def test_with_the_metadata_of_no_particular_machine(self, name):
        assert read(name).metadata == {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
        assert all(cell.metadata == {} for cell in read(name).cells)

    def test_with_names_for_its_cells(self, name):
        ids = [cell.id for cell in read(name).cells]
        assert len(ids) == len(set(ids))
        assert all(word.isalpha() for id_ in ids for word in id_.split("-"))


@pytest.mark.process
def test_a_fit_shows_a_bar_that_is_replaced_by_its_lines(tmp_path):
    """In a real kernel: one display, updated in place."""
    code = "import numpy as np\nfrom evdist import ECM\nX = np.arange(40.0).reshape(20, 2)\n"
    code += "model = ECM(2, random_state=0, verbose=True).fit(X)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=100, kernel_name="python3", resources=where).execute()
    shown = [out.data["text/html"] for out in notebook.cells[0].outputs if "data" in out]
    assert len(shown) == 1
    assert "objective" in shown[0] and "<progress" not in shown[0]
