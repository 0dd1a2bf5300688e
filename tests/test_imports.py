"""No module imports itself in the end, be it for types only or within a function: what two need stands below both."""

from __future__ import annotations

import importlib
from pathlib import Path

import grimp
import networkx as nx
import pytest


def cycles(package: str) -> list[list[str]]:
    """The sets of modules of which each imports, in the end, each other."""
    found = grimp.build_graph(package, cache_dir=None)
    graph = nx.DiGraph((m, imported) for m in found.modules for imported in found.find_modules_directly_imported_by(m))
    return sorted(sorted(modules) for modules in nx.strongly_connected_components(graph) if len(modules) > 1)


def test_no_imports_go_in_circles() -> None:
    assert cycles("dlog") == []


@pytest.mark.parametrize(
    "back",
    [
        "from circular.first import one\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from circular.first import one\n",
        "def two():\n    from circular.first import one\n",
    ],
)
def test_a_circle_is_found(back: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "circular"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "first.py").write_text("from circular import second\none = 1\n")
    (folder / "second.py").write_text(back)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert cycles("circular") == [["circular.first", "circular.second"]]
