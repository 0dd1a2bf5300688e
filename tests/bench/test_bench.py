"""The benchmark suite's own tools: data that stays the same, measurements that fail when they should."""

from __future__ import annotations

import hashlib
import sys

import numpy as np
import pytest

from tests.bench import inputs
from tests.bench.engine_souffle import printed_sizes, without_rules
from tests.bench.orders import reorder, spread
from tests.bench.process import NotMeasured, best_seconds, measure
from tests.bench.report import geometric_mean
from tests.bench.starting import thousand_rules

DIGESTS = {
    inputs.closure: "cbee04619ba676fc",
    inputs.path_closure: "f3224abc5633c325",
    inputs.same_generation: "66a8c606d25a5198",
    inputs.points_to: "c91c5622704fae02",
    inputs.pointer_analysis: "2b236892e6cf6bdd",
}


def digest(relations: dict[str, inputs.Rows]) -> str:
    parts = [name.encode() + np.ascontiguousarray(rows, dtype="<i8").tobytes() for name, rows in relations.items()]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


@pytest.mark.parametrize(("recipe", "expected"), DIGESTS.items())
def test_recipes_give_the_same_data_everywhere(recipe: inputs.Recipe, expected: str) -> None:
    assert digest(recipe()) == expected


def test_data_is_written_once(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DLOG_WORKLOADS", str(tmp_path))
    folder = inputs.prepare("small/path", lambda: {"edge": inputs.path_graph(3)})
    assert (folder / "edge.facts").read_text() == "0\t1\n1\t2\n"
    assert inputs.prepare("small/path", lambda: pytest.fail("made again")) == folder
    assert [path.name for path in folder.parent.iterdir()] == ["path"]


def test_measure_tells_peak_memory_and_output() -> None:
    cost = measure([sys.executable, "-c", "data = bytearray(80_000_000); print(len(data))"])
    assert cost.stdout == "80000000\n"
    assert 76 < cost.peak_mb < 140
    assert cost.seconds > 0


@pytest.mark.parametrize(
    ("program", "reason"),
    [("raise SystemExit('refused')", "refused"), ("import time; time.sleep(30)", "> 1 s")],
)
def test_measure_says_why_there_is_no_figure(program: str, reason: str) -> None:
    with pytest.raises(NotMeasured, match=reason):
        measure([sys.executable, "-c", program], timeout=1)


def test_missing_command_is_not_measured() -> None:
    with pytest.raises(NotMeasured):
        measure(["no-such-command-anywhere"])


def test_best_seconds_reports_the_reason_instead() -> None:
    times = iter([3.0, 1.0, 2.0])
    assert best_seconds(3, lambda: next(times)) == 1.0

    def absent() -> float:
        raise NotMeasured("absent")

    assert best_seconds(3, absent) == "absent"


def test_souffle_loads_the_same_inputs_without_rules() -> None:
    text = ".decl e(x: number)\n.input e\n.decl p(x: number)\n.printsize p\np(x) :- e(x).\n"
    assert without_rules(text) == ".decl e(x: number)\n.input e\n.printsize e\n"


def test_printed_sizes_are_read() -> None:
    assert printed_sizes("path\t12\nnoise\nreach\t3\n") == {"path": 12, "reach": 3}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("p(x, z) :- a(x), b(x, y), c(y, z).", "p(x, z) :- c(y, z), a(x), b(x, y)."),
        ("p(x, z) :- a(x), b(x, z).", "p(x, z) :- a(x), b(x, z)."),
        ("p(x) :- a(x), b(x), x > 1.", "p(x) :- a(x), b(x), x > 1."),
        (".decl a(x: number)", ".decl a(x: number)"),
    ],
)
def test_only_bodies_of_three_atoms_are_reordered(line: str, expected: str) -> None:
    assert reorder(line, (2, 0, 1)) == expected


def test_an_order_without_a_figure_has_no_spread() -> None:
    assert spread({"01": 1.0, "10": 1.5}) == 1.5
    assert spread({"01": 1.0, "10": "> 60 s"}) is None


def test_geometric_mean() -> None:
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)


def test_the_large_program_has_a_thousand_rules() -> None:
    assert thousand_rules().count(":-") == 1000
