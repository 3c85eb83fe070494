"""Imports go one way, stand at the top of the module, and respect who owns a dependency."""

from __future__ import annotations

from pathlib import Path

import layers
import pytest

from evdist.registry import PUBLIC


@pytest.fixture(scope="module")
def found(root: Path) -> list[layers.Import]:
    return list(layers.imports(root, PUBLIC))


def test_every_module_belongs_to_a_layer(root: Path) -> None:
    assert not layers.undeclared(root)


def test_no_layer_imports_from_a_later_one(found: list[layers.Import]) -> None:
    assert not layers.steps_up(found)


def test_packages_of_one_layer_do_not_go_in_circles(found: list[layers.Import]) -> None:
    assert not layers.circles(found)


def test_files_do_not_go_in_circles(found: list[layers.Import]) -> None:
    assert not layers.file_circles(found)


def test_first_party_imports_stand_at_the_top(found: list[layers.Import]) -> None:
    assert not layers.below_the_top(found)


def test_every_dependency_is_imported_by_its_owners_only(found: list[layers.Import]) -> None:
    assert not layers.strangers(found)


def test_names_with_an_underscore_stay_in_their_package(root: Path) -> None:
    assert not layers.private_names(root)


class TestTheCheckerCanFail:
    """Each rule, broken on purpose in a small tree of its own."""

    @staticmethod
    def tree(tmp_path: Path, files: dict[str, str]) -> list[layers.Import]:
        files = {"evdist/partition/__init__.py": "", **files}
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(layers.imports(tmp_path, {"CredalPartition": "evdist.partition"}))

    @pytest.mark.parametrize(
        "line",
        [
            "from evdist.partition import CredalPartition",
            "import evdist.partition.core",
            "from evdist import partition",
            "from evdist import CredalPartition",
            "from ..partition import CredalPartition",
            "from .. import partition",
            "if True:\n    from evdist import partition",
            "def f():\n    import evdist.partition",
            "import importlib; importlib.import_module('evdist.partition')",
            "STAGE = 'evdist.partition:load'",
        ],
    )
    def test_on_every_way_to_write_a_step_up(self, tmp_path: Path, line: str) -> None:
        found = self.tree(tmp_path, {"evdist/belief/focal.py": line})
        lineno = line.count("\n") + 1
        (problem,) = layers.steps_up(found)
        assert problem.startswith(f"evdist/belief/focal.py:{lineno}: evdist.belief imports")

    def test_on_flows_as_the_last_layer(self, tmp_path: Path) -> None:
        found = self.tree(
            tmp_path,
            {
                "flows/job.py": "import evdist.service.jobs",
                "evdist/service/jobs.py": "\nfrom flows import job",
            },
        )
        assert layers.steps_up(found) == [
            "evdist/service/jobs.py:2: evdist.service imports flows.job, of a later layer"
        ]

    def test_on_a_circle_within_one_layer(self, tmp_path: Path) -> None:
        files = {
            "evdist/partition/core.py": "import evdist.metrics",
            "evdist/metrics.py": "import evdist.partition\nimport evdist.stores",
        }
        problems = layers.circles(self.tree(tmp_path, files))
        assert [p.split(": ")[0] for p in problems] == [
            "evdist/metrics.py:1",
            "evdist/partition/core.py:1",
        ]

    @pytest.mark.parametrize(
        "line",
        [
            "from evdist.data.tables import read",
            "from evdist.data import tables",
            "from . import tables",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import evdist.data.tables",
            "LATER = 'evdist.data.tables:read'",
            "def f():\n    from .tables import read",
        ],
    )
    def test_on_two_files_of_one_package_in_a_circle(self, tmp_path: Path, line: str) -> None:
        files = {
            "evdist/data/__init__.py": "from evdist.data.tables import read",
            "evdist/data/tables.py": "FRAMES = 'evdist.data.frames'",
            "evdist/data/frames.py": line,
        }
        problems = layers.file_circles(self.tree(tmp_path, files))
        assert [p.rpartition(":")[0].partition(":")[0] for p in problems] == [
            "evdist/data/frames.py",
            "evdist/data/tables.py",
        ]
        assert all(p.endswith("in a circle of files") for p in problems)

    def test_on_a_circle_of_three_files(self, tmp_path: Path) -> None:
        files = {
            "evdist/data/a.py": "import evdist.data.b",
            "evdist/data/b.py": "import evdist.data.c",
            "evdist/data/c.py": "import evdist.data.a\nimport evdist.data.d",
            "evdist/data/d.py": "",
        }
        problems = layers.file_circles(self.tree(tmp_path, files))
        assert [p.split(": ")[0] for p in problems] == [
            f"evdist/data/{name}.py:1" for name in "abc"
        ]

    def test_on_a_module_without_a_layer(self, tmp_path: Path) -> None:
        self.tree(tmp_path, {"evdist/utils.py": "", "evdist/__init__.py": ""})
        assert layers.undeclared(tmp_path) == [
            "evdist/utils.py: evdist.utils has no layer; add it to LAYERS"
        ]

    def test_on_a_first_party_import_inside_a_function(self, tmp_path: Path) -> None:
        files = {
            "evdist/service/jobs.py": "class A:\n  def f(self):\n    from evdist import belief",
            "evdist/__init__.py": "def __getattr__(name):\n    import evdist.belief",
            "evdist/plot.py": "def f():\n    import matplotlib",
        }
        (problem,) = layers.below_the_top(self.tree(tmp_path, files))
        assert problem.startswith(
            "evdist/service/jobs.py:3: import of evdist.belief inside a function"
        )

    def test_on_a_private_name(self, tmp_path: Path) -> None:
        files = {
            "evdist/ecm/solver.py": "from evdist.kernels.graph import _mix",
            "evdist/ecm/kernel.py": "from evdist.ecm.solver import _own",
        }
        self.tree(tmp_path, files)
        assert layers.private_names(tmp_path) == [
            "evdist/ecm/solver.py:1: _mix belongs to evdist.kernels.graph"
        ]

    def test_on_a_dependency_used_by_a_stranger(self, tmp_path: Path) -> None:
        files = {
            "evdist/metrics.py": "import zarr",
            "evdist/stores.py": "import zarr",
            "evdist/belief/focal.py": "import ast\nimport numpy as np\nimport scipy.special",
        }
        assert layers.strangers(self.tree(tmp_path, files)) == [
            "evdist/belief/focal.py:3: evdist.belief may import only numpy",
            f"evdist/metrics.py:1: zarr belongs to {', '.join(layers.OWNERS['zarr'])}",
        ]
