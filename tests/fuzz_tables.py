"""Tables of every kind that is read, good ones and ones that no program should have written."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import zarr
from fuzz_damage import spoilt

#: What stands in a cell of a text table.
CELLS = [
    "1", "2.5", "-3", "1e5", "1e308", "1e999", "nan", "NaN", "", " ", "inf", "-inf", "NA", "None",
    "a", "ä", "0x10", "1_000", "1,5", "1;2", '"', '""', '"a', "'", "\\", "#", "\t", "|", "True",
    "2020-01-01", "٣", "\u202e", "\0", "=1+1", "9" * 400, "x" * 5000, "1.7976931348623159e308",
    "+", "-",
]  # fmt: skip
NAMES = [
    "x",
    "y",
    "z",
    "x",
    "",
    " ",
    "1",
    "Unnamed: 0",
    "index",
    "ä",
    "i",
    "label",
    '"',
    "nan",
    "\0",
]


def rows(n: int = 40) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.round(rng.normal(size=(n, 3)) + 6.0 * rng.integers(0, 2, (n, 1)), 3)


def write_all(folder: Path, X: np.ndarray) -> None:
    """A good table of every kind."""
    frame = pd.DataFrame(X, columns=["x", "y", "w"]).assign(z=["a", "b"] * (len(X) // 2))
    frame["w"] = frame["w"].abs() + 1
    frame.to_csv(folder / "x.csv", index=False)
    frame.to_csv(folder / "y.csv.gz")
    frame.to_csv(folder / "z.tsv", sep="\t", index=False)
    frame.to_parquet(folder / "x.parquet")
    frame[["x", "y"]].astype("float32").to_parquet(folder / "y.parquet", compression=None)
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", np.asfortranarray(X.astype("f4")))
    np.save(folder / "z.npy", (X * 100).astype("i2"))
    for name, options in (
        ("a", {"chunks": (16, 3)}),
        ("b", {"chunks": (8, 3), "shards": (16, 3)}),
        ("c", {"chunks": (16, 3), "zarr_format": 2}),
        ("d", {"chunks": (40, 2), "compressors": None}),
    ):
        array = zarr.create_array(
            str(folder / f"{name}.zarr"),
            shape=X.shape,
            dtype="f8",
            fill_value=float("nan"),
            **options,
        )
        array[:] = X


def any_table(folder: Path, rng: random.Random, box: Path) -> Path:
    """A table in `box`: one of the good ones with bytes spoilt, or cells drawn at random."""
    if rng.random() < 0.4:
        return drawn(rng, box)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    source = rng.choice(files)
    whole = source.read_bytes()
    if source.suffix == ".gz" and rng.random() < 0.7:
        content = gzip.compress(spoilt(gzip.decompress(whole), rng))
    elif source.suffix == ".npy" and rng.random() < 0.7:
        content = spoilt(whole[:128], rng) + whole[128:]
    elif source.suffix == ".parquet" and rng.random() < 0.5:
        content = whole[:-600] + spoilt(whole[-600:], rng)
    else:
        content = spoilt(whole, rng)
    # Sometimes the name says something else than the content.
    name = source.name if rng.random() < 0.9 else rng.choice(files).name
    (box / name).write_bytes(content)
    return box / name


def drawn(rng: random.Random, box: Path) -> Path:
    """Cells at random, as text or as a frame."""
    width, height = rng.choice([0, 1, 2, 3, 8]), rng.choice([0, 1, 2, 5, 30])
    names = [
        rng.choice(NAMES if rng.random() < 0.3 else ["x", "y", "z", "w", "u"]) for _ in range(width)
    ]
    good = rng.random() < 0.5

    def cell() -> str:
        return str(rng.randrange(50)) if good and rng.random() < 0.95 else rng.choice(CELLS)

    table = [[cell() for _ in range(width + rng.choice([0] * 30 + [1, -1]))] for _ in range(height)]
    if rng.random() < 0.7:
        delimiter = rng.choice([",", ",", ";", "\t", "|", " "])
        lines = [delimiter.join(row) for row in ([names] if rng.random() < 0.8 else []) + table]
        text = rng.choice(["\n", "\n", "\r\n", "\r"]).join(lines)
        encoding = rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"])
        path = box / rng.choice(["t.csv", "t.CSV", "t.tsv", "t.csv.gz"])
        content = text.encode(encoding, "replace")
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path
    columns: dict[str, Any] = {}
    for number, name in enumerate(dict.fromkeys(names)):
        columns[name] = _column(rng, number, height)
    path = box / "t.parquet"
    pd.DataFrame(columns).to_parquet(path, index=rng.random() < 0.3)
    return path


def _column(rng: random.Random, number: int, n: int) -> Any:
    values = np.arange(n) * (number + 1.0)
    match rng.randrange(10):
        case 0:
            return [rng.choice(["a", "b", None]) for _ in range(n)]
        case 1:
            return pd.array([rng.choice([1, None]) for _ in range(n)], dtype="Int64")
        case 2:
            return pd.to_datetime(values, unit="D")
        case 3:
            return values > 2
        case 4:
            return [[1, 2]] * n
        case 5:
            return [b"\xff\0"] * n
        case 6:
            return pd.Categorical.from_codes([rng.randrange(2) for _ in range(n)], ["p", "q"])
        case 7:
            return np.where(values > 3, rng.choice([np.nan, np.inf, 1e308]), values)
        case _:
            return values.astype(rng.choice(["f8", "f4", "i8", "u1"]))


def options(rng: random.Random) -> dict[str, Any]:
    """How a table is to be read."""
    given: dict[str, Any] = {}
    if rng.random() < 0.3:
        given["columns"] = rng.choice([["x"], ["x", "y"], ["y", "x"], ["nope"], ["x", "x"], ["1"]])
    if rng.random() < 0.2:
        given["label"] = rng.choice(["z", "x", "nope"])
    if rng.random() < 0.2:
        given["weight"] = rng.choice(["w", "x", "z", "nope"])
    if rng.random() < 0.15:
        given["id"] = rng.choice(["z", "u", "x", "nope"])
    if rng.random() < 0.1 and "columns" not in given:
        given["drop"] = rng.choice([["z"], ["x", "y", "z", "w"], ["nope"]])
    if rng.random() < 0.1:
        given["delimiter"] = rng.choice([",", ";", " ", "x", '"', "\n", "é", "1"])
    return given
