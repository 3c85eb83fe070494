"""Damage: how a fuzzer spoils values, bytes and trees of files, all of it from one `Random`."""

from __future__ import annotations

import json
import random
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

#: What a mutation puts in the place of something.
POISON: list[Any] = [
    None, True, False, 0, -1, 2**31, 2**63, -(2**70), 10**400, 0.5, -0.0, 1e308, float("nan"),
    float("inf"), "", " ", "0", "null", "nan", "../../../etc/passwd", "/dev/null", "file:///etc/x",
    "s3://", "://", "~", "a\0b", "\ud800", "\u202e", "ℵ" * 50, "x" * 1000, "%s%n", "{0}", "${HOME}",
    "'; drop table jobs; --", "<script>", [], {}, [[]], [None], [[0]], {"a": 1}, {"": None}, {1: 2},
    {None: None}, [["must"]], {"$ref": "#"}, {"__class__": "x"}, b"bytes", (1, 2), {1},
]  # fmt: skip
#: Those that JSON can hold.
JSON_POISON = [
    value for value in POISON if not isinstance(value, bytes | tuple | set) and value != 10**400
]

NAMES = ["cls", "self", "__init__", "model_fields", "url", "folder", "data ", "DATA", "", "\0", "é"]


def mutated(base: Any, rng: random.Random, poison: list[Any] = POISON, other: Any = None) -> Any:
    """The base with one place changed: replaced, removed, doubled, renamed, buried."""
    base = deepcopy(base)
    node, places = base, []
    while isinstance(node, dict | list) and node and (not places or rng.random() < 0.7):
        key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        places.append((node, key))
        node = node[key]
    if not places:
        return deepcopy(rng.choice(poison))
    where, key = places[-1]
    match rng.randrange(6):
        case 0 | 1:
            where[key] = deepcopy(rng.choice(poison))
        case 2:
            del where[key]
        case 3:
            name = rng.choice([*NAMES, f"{key}x", str(key)[:-1]])
            if isinstance(where, dict):
                where[name] = where.pop(key)
            else:
                where.insert(0, deepcopy(where))
        case 4:
            for _ in range(rng.choice([1, 3, 40])):
                where[key] = [where[key]] if rng.random() < 0.5 else {"data": where[key]}
        case 5:
            where[key] = deepcopy(other if other is not None else base)
    return base


def spoilt(content: bytes, rng: random.Random) -> bytes:
    """Bytes with some changed, cut off, doubled, lost or put in."""
    text = bytearray(content)
    for _ in range(rng.choice([1, 1, 3, 10])):
        at = rng.randrange(len(text) + 1)
        match rng.randrange(8):
            case 0 | 1 if at < len(text):
                text[at] = rng.randrange(256)
            case 2:
                del text[at : at + rng.randrange(1, 40)]
            case 3:
                text[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
            case 4:
                text[at:at] = text[: rng.randrange(1, 200)]
            case 5 if rng.random() < 0.3:
                del text[at:]
            case 6 if at < len(text):
                text[at] ^= 1 << rng.randrange(8)
            case 7:
                text[at:at] = rng.choice(
                    [b"\0" * 16, b"\xff\xfe", b"\xef\xbb\xbf", b'"', b",", b"\n", b"\r", b"{",
                     b"9" * 30, b"-", b"1e999", b"nan", b"!!python/object:os.system ", b"&a *a"]
                )  # fmt: skip
    return bytes(text)


def spoil_json(path: Path, rng: random.Random, seal: Any = None) -> None:
    """A JSON file with values changed; `seal` makes the result look whole."""
    try:
        values = json.loads(path.read_bytes())
    except ValueError:  # spoilt before
        path.write_bytes(spoilt(path.read_bytes(), rng))
        return
    for _ in range(rng.choice([1, 1, 2, 4])):
        values = mutated(values, rng, JSON_POISON)
    if seal is not None and isinstance(values, dict):
        values = seal(values)
    path.write_bytes(json.dumps(values).encode("utf-8", "surrogatepass"))


def spoil_file(path: Path, rng: random.Random) -> None:
    """A file spoilt, emptied, removed, or a folder in its place."""
    match rng.randrange(12):
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(b"")
        case 2:
            path.unlink()
            path.mkdir()
        case 3 | 4 | 5 if path.suffix == ".json":
            spoil_json(path, rng)
        case _:
            path.write_bytes(spoilt(path.read_bytes(), rng))


def spoil_tree(root: Path, rng: random.Random) -> None:
    """Some files of a folder spoilt, or a part of it lost."""
    for _ in range(rng.choice([1, 1, 1, 3])):
        files = sorted(path for path in root.rglob("*") if path.is_file())
        if not files:
            return
        # What describes a store is met as often as what it holds.
        named = [path for path in files if path.suffix == ".json" or path.name.startswith(".z")]
        path = rng.choice(named if named and rng.random() < 0.6 else files)
        if rng.random() < 0.05 and path.parent != root:
            shutil.rmtree(path.parent)
        else:
            spoil_file(path, rng)
