"""What sessions keep of the past and a spine of it are read alike, or the bench says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dlog.engine.values.table import Table
from tests.bench import history_spine
from tests.bench.past_reads import Shape
from tests.bench.process import Options
from tests.bench.spine_past import SpineTrace

SHAPES = {
    Shape("1 of 50", 50, 1): 200,
    Shape("all", 20, 20): 200,
    Shape("strings", 50, 10, text=True): 200,
}


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(history_spine, "STREAMS", SHAPES)
    monkeypatch.setattr(history_spine, "WINDOWS", {150: "150", history_spine.ALL: "all"})
    monkeypatch.setattr(history_spine, "COMMITS", 5)
    monkeypatch.setattr(history_spine, "REPEATS", 2)
    return history_spine.run(Options((), (), 1, 60, tmp_path / "figures.json"))


def test_a_past_in_a_spine_is_read_as_that_of_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(tmp_path, monkeypatch)


@pytest.mark.parametrize("read", ["selected", "net", "table"])
def test_the_bench_fails_where_they_differ(read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(SpineTrace, read)

    def wrong(trace: SpineTrace, *given: object) -> object:
        found = right(trace, *given)
        if read == "net":
            return None
        more = [given[0][0], 0] if read == "selected" else [-1, 0]  # type: ignore[index]
        pairs = zip(found.columns, more, strict=True)
        columns = tuple(np.append(column, np.array([one], column.dtype)) for column, one in pairs)
        return Table(found.kinds, columns)

    monkeypatch.setattr(SpineTrace, read, wrong)
    assert not run(tmp_path, monkeypatch)
