"""Tables of numbers in files: NumPy, CSV, Parquet and zarr."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import zarr
from numpy.typing import NDArray

__all__ = ["read_table", "refuse_text"]


def read_table(path: str | Path) -> NDArray:
    """All rows of a .npy, .csv(.gz), .parquet or .zarr file; text columns are refused."""
    name = str(path)
    bare = name.removesuffix(".gz")
    if bare.endswith(".npy"):
        # Never unpickle: a file of objects is an error, not a program.
        return np.load(name, allow_pickle=False)
    if bare.endswith((".zarr", ".zarr/")):
        node = zarr.open(name, mode="r")
        if not isinstance(node, zarr.Array):
            raise ValueError(f"{name} is a zarr group; name the array in it, e.g. {name}/X.")
        return np.asarray(node[:])
    if bare.endswith(".csv"):
        return _numbers(pd.read_csv(name), name)
    if bare.endswith((".parquet", ".pq")):
        return _numbers(pd.read_parquet(name), name)
    raise ValueError(f"Cannot read {name}: known endings are .npy, .csv, .csv.gz, .parquet, .zarr.")


def _numbers(frame: pd.DataFrame, name: str) -> NDArray:
    refuse_text(frame, name)
    return frame.to_numpy()


def refuse_text(frame: pd.DataFrame, name: str) -> None:
    """Refuse columns of anything but numbers, naming the column and the first such row."""
    for place, column in enumerate(frame.columns):
        values = frame.iloc[:, place]
        if pd.api.types.is_numeric_dtype(values):
            continue
        number = pd.to_numeric(values.astype(object), errors="coerce")
        bad = (number.isna() & values.notna()).to_numpy()
        if pd.api.types.is_object_dtype(values) and not bad.any():
            continue  # numbers that a frame of mixed columns keeps as objects
        row = int(bad.argmax())
        raise ValueError(
            f"Column {column!r} of {name} is not numeric: row {row} holds {values.iloc[row]!r}. "
            "Leave that column out or encode it as numbers."
        )
