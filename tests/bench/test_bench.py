"""The benchmark suite's own tools: data that stays the same, measurements that fail when they should."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dlog.pipeline import compile_program
from tests.bench import activation, engine_datatoad, engine_flowlog, engine_rust, inputs, rivals, spark_bulk, spark_graphframes
from tests.bench.engine_souffle import printed_sizes, without_rules
from tests.bench.orders import reorder, spread
from tests.bench.process import NotMeasured, Options, Result, best_seconds, measure
from tests.bench.report import geometric_mean
from tests.bench.spark import RIVALS, same
from tests.bench.spark_workloads import WORKLOADS, rmat, rmat_graph
from tests.bench.starting import thousand_rules
from tests.bench.workloads import WORKLOADS as BATCH

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


@pytest.mark.slow
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


def test_datatoad_is_told_to_load_and_to_derive(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DLOG_WORKLOADS", str(tmp_path))
    workload = replace(BATCH["W2"], recipe=lambda: {"edge": inputs.path_graph(3)})
    told = engine_datatoad.commands(workload).splitlines()
    assert told[1] == f".flow edge {tmp_path / 'W2' / 'edge.csv'}"
    assert told[3] == "path(x, y) :- edge(x, y). path(x, z) :- edge(x, y), path(y, z)."
    assert (tmp_path / "W2" / "edge.csv").read_text() == "0,1\n1,2\n"


def test_sizes_that_datatoad_lists_in_parts_are_added() -> None:
    assert engine_datatoad.listed("  12 path [a]\n  3 path [b]\n  4 edge [c]\nnoise\n") == {"path": 15, "edge": 4}


COMPILER = """#!/bin/sh
[ "$1" = --version ] && exec echo flowlog 1
grep -q "^.input edge$" "$1" || exit 1
while [ "$1" != -o ]; do shift; done
echo >> "$2.times"
cat > "$2" <<'END'
#!/bin/sh
printf '%s:\\tData loaded for edge\\n' 20ms 30.5ms
printf '1.25s:\\tDataflow executed\\n'
echo {size} > path.csv
END
chmod +x "$2"
"""


@pytest.fixture
def flowlog(tmp_path, monkeypatch) -> Path:
    """A compiler whose programs say that a path of three nodes has as many paths as the file tells."""
    monkeypatch.setenv("DLOG_WORKLOADS", str(tmp_path))
    monkeypatch.setenv("FLOWLOG", str(tmp_path / "flowlog"))
    small = replace(BATCH["W2"], recipe=lambda: {"edge": inputs.path_graph(3)}, rows={"path": 3})
    monkeypatch.setitem(BATCH, "W2", small)
    return tmp_path / "flowlog"


def install(compiler: Path, size: int) -> None:
    compiler.write_text(COMPILER.replace("{size}", str(size)))
    compiler.chmod(0o755)


def test_flowlog_tells_its_times_and_is_compiled_once(flowlog) -> None:
    install(flowlog, 3)
    for _ in range(2):
        result = engine_flowlog.flowlog(1)(BATCH["W2"], 60)
        assert (result.load_seconds, result.eval_seconds) == pytest.approx((0.0505, 1.1995))
        assert result.answer == {"path": 3}
    assert [path.read_text() for path in (flowlog.parent / "flowlog-programs").glob("*.times")] == ["\n"]


def test_a_wrong_answer_of_flowlog_is_told(flowlog, capsys) -> None:
    install(flowlog, 4)
    options = Options(("W2",), ("flowlog -w1",), 1, 60, flowlog.with_name("figures"))
    assert not rivals.run(options)
    assert "W2 flowlog -w1: {'path': 4} instead of {'path': 3}" in capsys.readouterr().out


def test_flowlog_is_left_out_where_it_is_absent_or_refuses(flowlog) -> None:
    engine = engine_flowlog.flowlog(2)
    with pytest.raises(NotMeasured, match="absent"):
        engine(BATCH["W2"], 60)
    flowlog.write_text("#!/bin/sh\n[ $1 = --version ]\n")
    flowlog.chmod(0o755)
    with pytest.raises(NotMeasured, match="does not compile"):
        engine(BATCH["W2"], 60)


def test_distances_that_flowlog_writes_are_summed_up(tmp_path) -> None:
    (tmp_path / "dist.csv").write_text("7\t0\n8\t5\n9\t5\n")
    assert engine_flowlog.written(tmp_path, BATCH["W6"]) == {"dist": 3, "total": 10}


def test_flowlog_says_no_time_without_an_end() -> None:
    with pytest.raises(NotMeasured, match="tells no time"):
        engine_flowlog.told("2ms:\tData loaded for edge\n")


def test_rust_programs_read_inputs_as_integers_of_four_bytes(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DLOG_WORKLOADS", str(tmp_path))
    folder = engine_rust.facts(replace(BATCH["W2"], recipe=lambda: {"edge": inputs.path_graph(3)}))
    assert np.fromfile(folder / "edge.u32", "<u4").tolist() == [0, 1, 1, 2]


def test_the_nearest_rival_is_the_fastest_that_was_measured() -> None:
    results = {name: Result(seconds, 0, 0, 0, 0, {}) for name, seconds in {"dlog": 2.0, "slow": 9.0, "near": 5.0}.items()}
    assert rivals.nearest(results | {"absent": "absent"}) == ("near", 2.5)
    assert rivals.nearest({"dlog": results["dlog"], "absent": "absent"}) is None


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


def test_rmat_graphs_have_as_many_different_edges_as_asked_for() -> None:
    edges = rmat(np.random.default_rng(1), 8, 1000)
    assert (len(np.unique(edges, axis=0)), edges.min() >= 0, edges.max() < 256) == (1000, True, True)
    assert (edges[:, 0] != edges[:, 1]).all()
    assert np.bincount(edges[:, 0]).max() > 40  # skewed, as R-MAT graphs are: the mean is 4
    assert digest(rmat_graph(6, 150)) == "154223dde74ad647"


@pytest.mark.parametrize("name", WORKLOADS)
def test_programs_for_spark_compile_and_put_out_their_answer(name: str) -> None:
    program = compile_program(WORKLOADS[name].program())
    assert [io.relation for io in program.io if io.action == "output"] == [WORKLOADS[name].output]


@pytest.mark.parametrize("name", spark_bulk.WORKLOADS)
def test_bulk_programs_put_out_the_size_of_their_answer_only(name: str) -> None:
    program = compile_program(spark_bulk.WORKLOADS[name].program())
    assert [io.relation for io in program.io if io.action != "input"] == ["size"]
    assert program.relations["size"].arity == 1


def test_every_rival_has_a_workload() -> None:
    assert {name for solvers in RIVALS.values() for name in solvers} == set(WORKLOADS)


def test_fingerprints_are_the_same_but_for_rounding() -> None:
    assert same({"rows": 3.0, "ranks": 1.0}, {"rows": 3.0, "ranks": 1.0 + 1e-12})
    assert not same({"rows": 3.0, "ranks": 1.0}, {"rows": 3.0, "ranks": 1.0 + 1e-6})
    assert not same({"rows": 3.0}, {"rows": 3.0, "ranks": 1.0})


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("none", {}),
        ("/a/g.jar", {"spark.jars": "/a/g.jar"}),
        ("g:a:1, g:b:1", {"spark.jars.packages": "g:a:1,g:b:1", "spark.jars.ivySettings": "/ivy.xml"}),
    ],
)
def test_graphframes_come_from_where_the_environment_says(monkeypatch, told: str, expected: dict[str, str]) -> None:
    monkeypatch.setenv("DLOG_GRAPHFRAMES", told)
    monkeypatch.setenv("DLOG_IVY_SETTINGS", expected.get("spark.jars.ivySettings", ""))
    assert spark_graphframes.settings() == expected


@pytest.mark.parametrize("chains", [1, 3, activation.CHAINS])
def test_operators_run_in_static_order_all_by_a_queue_those_that_something_reaches(chains: int) -> None:
    graphs = {name: build() for name, build in activation.KINDS.items()}
    for graph in graphs.values():
        for _ in range(3):
            graph.round(chains)
    expected = sum(round + k + activation.LENGTH for round in range(3) for k in range(chains))
    assert {graph.total.total for graph in graphs.values()} == {expected}
    ran = {name: sum(o.activations for o in graph.scheduler.operators) for name, graph in graphs.items()}
    assert ran["static"] == 3 * len(graphs["static"].scheduler.operators)
    assert ran["queue"] == 3 * (chains * (activation.LENGTH + 1) + 1)
    assert ran["fused"] == 3 * (2 * chains + 1)


def test_lines_cross_where_they_are_equal() -> None:
    assert activation.crossing_of({16: 1.0, 48: 5.0}, {16: 3.0, 48: 3.0}) == 32 / activation.CHAINS
    assert activation.crossing_of({16: 1.0, 48: 2.0}, {16: 3.0, 48: 3.0}) is None
    assert activation.crossing_of({16: 4.0, 48: 5.0}, {16: 3.0, 48: 3.0}) is None
