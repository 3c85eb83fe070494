"""Run the notebooks from top to bottom and keep what they show.

    python notebooks/execute.py [NAME ...]

Each runs in an empty folder. Kept are the outputs, with pictures of few colours; times, paths and
the names of the machine are taken out, so that a second run changes nothing but what has changed.
"""

from __future__ import annotations

import base64
import io
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).resolve().parent
#: Enough for lines, eight colours and their shades.
COLOURS = 96
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def main(names: list[str]) -> None:
    """Entry point."""
    for path in [FOLDER / name for name in names] or sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as place:
            resources = {"metadata": {"path": place}}
            NotebookClient(
                notebook, timeout=240, kernel_name="python3", resources=resources
            ).execute()
            clean(notebook, place)
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size:,} bytes")


def clean(notebook: nbformat.NotebookNode, place: str) -> None:
    """Leave nothing of this run but what its cells show."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        for output in cell.get("outputs", []):
            if "text" in output:
                output.text = output.text.replace(place, ".")
            for kind, value in output.get("data", {}).items():
                if kind == "image/png":
                    output.data[kind] = smaller(value)
                elif isinstance(value, str):
                    output.data[kind] = value.replace(place, ".")


def smaller(picture: str) -> str:
    """A PNG in base64 with few colours: a fifth of its size."""
    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    kept = io.BytesIO()
    image.quantize(COLOURS).save(kept, "PNG", optimize=True)
    return base64.b64encode(kept.getvalue()).decode()


if __name__ == "__main__":
    main(sys.argv[1:])
