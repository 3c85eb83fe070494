"""Arrays of one process that need not fit its memory: those beyond a limit lie in files.

Not memory maps: pages that were looked at count as memory of the process until the system wants
them back, and a worker with a limit is stopped before that.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Shelf:
    """Arrays by key. What is taken must not be changed; what is put replaces what was there.

    Parameters
    ----------
    room : int
        Bytes that arrays may take in memory.
    folder : str or None
        Where files go, None for the system's place for them; they are removed by `close`.
    """

    def __init__(self, room: int, folder: str | None = None):
        self._left = room
        self._folder = folder
        self._held: dict[Hashable, NDArray[Any]] = {}
        self._files: dict[Hashable, tuple[str, tuple[int, ...], np.dtype[Any]]] = {}
        self._scratch: str | None = None

    @property
    def left(self) -> int:
        """Bytes of memory that are not taken."""
        return self._left

    def reserve(self, size: int) -> bool:
        """Take `size` bytes for something else, if they are there."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def put(self, key: Hashable, array: NDArray[Any]) -> None:
        old = self._held.pop(key, None)
        if old is not None:
            self._left += old.nbytes
        if key not in self._files and array.nbytes <= self._left:
            self._left -= array.nbytes
            self._held[key] = array
            return
        array = np.ascontiguousarray(array)
        name, _, _ = self._files.get(key, (f"{self._place()}/{len(self._files)}", (), None))
        self._files[key] = (name, array.shape, array.dtype)
        array.tofile(name)

    def get(self, key: Hashable) -> NDArray[Any] | None:
        """The array, None where none was put."""
        if key in self._held:
            return self._held[key]
        if key not in self._files:
            return None
        name, shape, dtype = self._files[key]
        return np.fromfile(name, dtype).reshape(shape)

    def _place(self) -> str:
        if self._scratch is None:
            self._scratch = tempfile.mkdtemp(prefix="evdist-", dir=self._folder)
            # Also where nothing closes the shelf: a worker drops its state with its client.
            self._remove = weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        return self._scratch

    def close(self) -> None:
        self._held.clear()
        self._files.clear()
        if self._scratch is not None:
            self._remove()
            self._scratch = None
