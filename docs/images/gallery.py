"""Draw the pictures of docs/gallery.md, by the code that stands above each of them."""

import io
import os
import re
import tempfile
from pathlib import Path

from PIL import Image

from evdist import plot

HERE = Path(__file__).resolve().parent
text = (HERE.parent / "gallery.md").read_text(encoding="utf-8")
parts = re.findall(r"^```python\n(.*?)^```\n+(?:!\[[^]]*\]\(images/(.*?)\))?", text, re.M | re.S)
values: dict[str, object] = {}
os.chdir(tempfile.mkdtemp())
for code, name in parts:
    exec(compile(code, "gallery.md", "exec"), values)
    if name:
        (HERE / name).parent.mkdir(exist_ok=True)
        picture = Image.open(io.BytesIO(plot.to_png(values["drawn"]))).convert("RGB")
        picture.thumbnail((900, 900))
        picture.quantize(96).save(HERE / name, optimize=True)
