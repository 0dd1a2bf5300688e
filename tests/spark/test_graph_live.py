"""Graphs in Spark that change: the same answers, round by round, as of arrays that change, and no graph on the driver."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import dlog
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.graphs.frames import frame_changes
from tests.spark.test_graphs import NAMED, QUESTIONS, frame, integer, negative, rows, table, word

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

RECOMPUTED = {
    "strong components",
    "core numbers",
    "2-core",
    "2-truss",
    "3-truss",
    "pagerank to a tolerance",
    "independent set",
}
Change = tuple[list[tuple[int, int, int]], list[tuple[int, int]]]
ROUNDS: list[Change] = [
    ([(7, 50, 2), (50, 51, 1), (51, 7, 0)], [(0, 0), (42, 40)]),
    ([(42, 40, 3), (7, 50, 9)], [(50, 51), (7, 19)]),
    ([(60, 5, 4)], [(7, 50), (40, 41), (5, 5)]),
]
"""Parallel edges go together; an edge of the beginning goes, comes back, and another one that came goes; edges that are not
there go, and so do loops."""


def both(spark: SparkSession, named: Any, directed: bool = True) -> tuple[Any, Any]:
    """The same graph, live, in Spark and in arrays."""
    on_spark = dlog.graph(frame(spark, named), directed=directed)
    return on_spark.live(), dlog.graph(table(named), directed=directed, threads=1).live()


def changed(live: Any, named: Any, change: Change) -> None:
    added, removed = change
    live.add_edges([(named(a), named(b)) for a, b in removed])  # so that all of them are vertices
    live.rollback()
    live.remove_edges([(named(a), named(b)) for a, b in removed])
    live.add_edges([(named(a), named(b), weight) for a, b, weight in added])
    live.commit()


def changed_by_frames(spark: SparkSession, live: Any, named: Any, change: Change) -> None:
    """The same, of which most are DataFrames."""
    added, removed = change
    type = "string" if named is word else "bigint"
    ends = [(named(a), named(b)) for a, b in removed]
    weighted = spark.createDataFrame([(named(a), named(b), w) for a, b, w in added], f"src {type}, dst {type}, weight int")
    live.add_edges(spark.createDataFrame(ends, f"src {type}, dst {type}"))  # so that all of them are vertices
    live.rollback()
    live.remove_edges(ends[:1])
    live.add_edges([(*end, 1) for end in ends])
    live.remove_edges(spark.createDataFrame(ends[1:], f"src {type}, dst {type}"))
    live.remove_edges(ends[:1])
    live.add_edges([(named(90 + len(live)), named(91), 1)])
    live.add_edges(weighted)
    live.remove_edges([(named(90 + len(live)), named(91))])
    live.add_vertices(spark.createDataFrame([(named(90),), (named(90),), (named(7),)], f"id {type}"))
    live.commit()


def check(spark: SparkSession, named: Any, directed: bool, questions: list[str], frames: bool = False) -> None:
    """All answers of a graph share the one slot that workers have, of two; a run takes the other."""
    on_spark, here = both(spark, named, directed)
    with on_spark, here:
        asked = {name: [QUESTIONS[name](live, named) for live in (on_spark, here)] for name in questions}
        assert {name for name, (found, _) in asked.items() if not found.maintained} == RECOMPUTED & set(questions)
        for number, change in enumerate(ROUNDS):
            before = {name: Counter(rows(answer)) for name, (answer, _) in asked.items()}
            if frames and number != 1:
                here.add_vertices([named(90 + len(here)), named(91), named(90)])
                changed_by_frames(spark, on_spark, named, change)
                changed(here, named, change)
            else:
                changed(on_spark, named, change)
                changed(here, named, change)
            assert len(on_spark) == len(here)
            for name, (found, wanted) in asked.items():
                after = Counter(rows(found))
                assert after == Counter(rows(wanted)), (name, on_spark.round)
                assert found.table.column_names == wanted.table.column_names
                assert len(found) == len(wanted)
                assert told(found) == {
                    row: after[row] - before[name][row] for row in after | before[name] if after[row] != before[name][row]
                }


def told(answer: Any) -> dict[Any, int]:
    """The changes of an answer that are left when values are rounded."""
    sums: Counter[Any] = Counter()
    for *row, diff in zip(*(column.to_pylist() for column in answer.changes.columns), strict=True):
        sums[rows([tuple(row)])[0]] += diff
    return {row: diff for row, diff in sums.items() if diff}


MAINTAINED = [name for name in QUESTIONS if name not in RECOMPUTED]


@pytest.mark.parametrize("questions", [MAINTAINED[:5], MAINTAINED[5:]], ids=["paths", "others"])
def test_maintained_answers_about_integers_follow(spark: SparkSession, questions: list[str]) -> None:
    check(spark, negative, True, questions)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "2-core" else pytest.mark.slow) for n in sorted(RECOMPUTED)])
def test_computations_about_integers_are_done_again(spark: SparkSession, name: str) -> None:
    check(spark, negative, True, ["components", name])


@pytest.mark.parametrize("directed", [True, False])
def test_answers_about_strings_follow(spark: SparkSession, directed: bool) -> None:
    check(spark, word, directed, [name for name in NAMED if name not in RECOMPUTED])


@pytest.mark.parametrize(
    ("named", "directed", "questions"),
    [
        (negative, True, ["weighted paths", "degrees", "2-core"]),
        (word, False, ["components", "degrees"]),
        pytest.param(word, True, ["weighted paths", "components", "pagerank"], marks=pytest.mark.slow),
    ],
    ids=["integers", "strings", "directed strings"],
)
def test_answers_follow_dataframes_that_stay_with_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, named: Any, directed: bool, questions: list[str]
) -> None:
    """Removals and additions, in the order in which they were staged, among others that the driver has; and a small change
    after large ones."""
    monkeypatch.setattr(frame_changes, "MAX_RELAYED_ROWS", 0)
    check(spark, named, directed, questions, frames=True)


@pytest.mark.parametrize("named", [integer, word])
def test_large_dataframes_of_changes_do_not_come_to_the_driver(
    spark: SparkSession, brought: list[int], monkeypatch: pytest.MonkeyPatch, named: Any
) -> None:
    many = 2_000
    monkeypatch.setattr(frame_changes, "MAX_RELAYED_ROWS", many)
    id = "id" if named is integer else "concat('v', id)"
    edges = spark.range(3 * many + 1).selectExpr(f"{id} as src", f"{id.replace('id', '(id + 1)')} as dst", "1 as weight")
    live: Any = dlog.graph(edges.where(f"id <= {many}")).live()
    with live:
        name = named if named is integer else "v{}".format
        found = live.shortest_paths(sources=name(0), weight="weight")
        live.add_edges(edges.where(f"id > {many}"))
        live.add_vertices(spark.range(5 * many, 7 * many + 1).selectExpr(f"{id} as id"))
        live.commit()
        assert (len(found), len(live)) == (3 * many + 2, 5 * many + 3)
        live.remove_edges(edges.where(f"id >= {many - 1}"))
        live.add_edges([(name(0), name(6 * many), 7)])
        live.commit()
        assert len(found) == many + 1
        assert sum(brought) < 100
        assert found.changes.num_rows == 2 * many + 3
        assert max(distance for *_, distance in found) == many - 1


def test_a_dataframe_of_changes_that_does_not_do_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_changes, "MAX_RELAYED_ROWS", 0)
    with live_of(spark, [(1, 2, 5), (2, 3, 5)]) as live:
        paths = live.shortest_paths(sources=1, weight="weight")
        for rows_given, schema, message in (
            ([(1, 3, -1)], "src long, dst long, weight int", "negative weight: -1"),
            ([(1, 3)], "src long, dst long", "no column `weight`"),
            ([(1, 3, 0.5)], "src long, dst long, weight double", "is of floats, after weights that are integers"),
        ):
            live.add_edges(spark.createDataFrame(rows_given, schema))
            with pytest.raises(DlogError, match=message):
                live.commit()
            live.rollback()
        with pytest.raises(DlogError, match="ids of type bigint, and those in `src` are of type string"):
            live.add_edges(spark.createDataFrame([("a", "b")], "src string, dst string"))
        with pytest.raises(DlogError, match="the edge table has no column `dst`"):
            live.add_edges(spark.createDataFrame([(1, 2)], "src long, target long"))
        with pytest.raises(DlogError, match="the column `dst` of the edge table has nulls"):
            live.add_edges(spark.createDataFrame([(1, None)], "src long, dst long"))
        with pytest.raises(DlogError, match="dst: there is no vertex 7"):
            live.remove_edges(spark.createDataFrame([(1, 7)], "src long, dst long"))
        with pytest.raises(DlogError, match="the vertex table has no column `id`"):
            live.add_vertices(spark.createDataFrame([(1,)], "vertex long"))
        assert (live.round, live.commit(), len(live)) == (0, 1, 3)
        live.add_edges(spark.createDataFrame([(1, 3, 2)], "src int, dst int, weight int"))
        live.commit()
        assert rows(paths) == [(1, 1, 0), (1, 2, 5), (1, 3, 2)]


@pytest.mark.parametrize("named", [integer, word])
def test_neither_the_graph_nor_answers_come_to_the_driver(spark: SparkSession, brought: list[int], named: Any) -> None:
    """A cycle of many vertices: rows that come are counts and ends of changes, and the graph of arrays all come at once."""
    many = 5_000
    id = "id" if named is integer else "concat('v', id)"
    edges = spark.range(many).selectExpr(f"{id} as src", f"{id.replace('id', f'(id + 1) % {many}')} as dst", "1 as weight")
    live: Any = dlog.graph(edges).live()
    with live:
        name = named if named is integer else "v{}".format
        found = live.shortest_paths(sources=name(0), weight="weight")
        degrees = live.degrees()
        live.remove_edges([(name(many - 2), name(many - 1))])
        live.add_edges([(name(0), name(many - 1), 7), (name(0), name(many), 8)])
        live.commit()
        assert (len(found), len(degrees), len(live)) == (many + 1, many + 1, many + 1)
        assert sum(brought) < 100
        assert sorted(d for *_, d in told(found)) == [7, 8, many - 1]
        assert found.changes.num_rows == 3 and sum(brought) < 100
        assert found.df.count() == len(found.table) == many + 1
    brought.clear()
    with dlog.graph(edges, engine="embedded").live():
        assert max(brought) == many


def test_rollback_forgets_edges(spark: SparkSession) -> None:
    with live_of(spark, [(1, 2, 5), (2, 3, 5)]) as live:
        reached = live.reachable(1)
        live.remove_edges([(1, 2)])
        live.add_edges([(1, 9)])
        live.rollback()
        assert live.commit() == 1
        assert rows(reached) == [(1,), (2,), (3,)] and reached.changes.num_rows == 0
        live.add_edges([(3, 9)])
        live.commit()
        assert (rows(reached), len(live)) == ([(1,), (2,), (3,), (9,)], 4)
        live.add_vertices([9, 10])
        live.commit()
        assert len(live) == 5
        assert rows(live.bfs(10)) == [(10, 0)]


def test_a_commit_that_is_refused_changes_nothing(spark: SparkSession) -> None:
    with live_of(spark, [(1, 2, 5), (2, 3, 5)]) as live:
        paths = live.shortest_paths(sources=1, weight="weight")
        for edge, message in {
            (1, 3, -1): "negative weight: -1",
            (1, 3): "no column `weight`",
            (1, 3, 0.5): "is of floats, after weights that are integers",
        }.items():
            live.add_edges([edge])
            with pytest.raises(DlogError, match=message):
                live.commit()
            live.rollback()
        assert live.round == 0
        live.add_edges([(1, 3, 2)])
        live.commit()
        assert rows(paths) == [(1, 1, 0), (1, 2, 5), (1, 3, 2)]
        paths.close()
        live.add_edges([(3, 1, 0.5)])
        live.commit()
        assert rows(live.shortest_paths(sources=3, weight="weight")) == [(3, 1, 0.5), (3, 2, 5.5), (3, 3, 0.0)]


def test_an_answer_that_fails_is_at_its_end_and_others_go_on(spark: SparkSession) -> None:
    def fails(*_: Any) -> None:
        raise DlogError(Diagnostic("spark-failed", "lost"))

    with live_of(spark, [(1, 2, 5), (2, 3, 5)]) as live:
        first, failing, last = live.reachable(1), live.reachable(2), live.reachable(3)
        failing.follower.advance = fails
        live.add_edges([(3, 4, 1)])
        with pytest.raises(DlogError, match=r"^error: lost$"):
            live.commit()
        live.add_edges([(4, 5, 1)])
        assert live.commit() == 2
        assert (len(first), len(last)) == (5, 3)
        with pytest.raises(DlogError, match="this answer could not follow after round 0: lost"):
            print(failing.df)
        failing.close()


def test_weights_need_not_come_with_a_commit(spark: SparkSession) -> None:
    with live_of(spark, [(1, 2, 5), (2, 3, 5)]) as live:
        paths = live.shortest_paths(sources=1, weight="weight")
        live.add_vertices([7])
        live.commit()
        assert rows(paths) == [(1, 1, 0), (1, 2, 5), (1, 3, 10)]
        live.remove_edges([(2, 3)])
        live.commit()
        assert rows(paths) == [(1, 1, 0), (1, 2, 5)]


def test_vertices_of_another_type_and_unknown_ones_are_refused(spark: SparkSession) -> None:
    with live_of(spark, [(1, 2, 5)]) as live:
        with pytest.raises(DlogError, match="vertices have ids of type bigint, and 'a' cannot be one"):
            live.add_edges([("a", "b")])
        with pytest.raises(DlogError, match="src: there is no vertex 7"):
            live.remove_edges([(7, 1)])
        with pytest.raises(DlogError, match="sources: there is no vertex 7"):
            live.bfs(7)
        live.remove_edges([(2, 1)])
        live.commit()
        assert len(live.reachable(1)) == 2


def lose_workers(spark: SparkSession, live: Any) -> None:
    """As if an executor had died: Spark ends the stage in which the workers are."""
    (resident_workers,) = live._workers._resident_workers
    spark.sparkContext.cancelJobGroup(resident_workers._group)
    while not resident_workers.is_gone:
        time.sleep(0.05)


@pytest.mark.parametrize("named", [integer, word])
def test_answers_go_on_with_other_workers_where_theirs_are_lost(spark: SparkSession, named: Any) -> None:
    """Before they are read, and before a commit: what that changed is not known then."""
    live, here = both(spark, named)
    with live, here:
        asked = [(g.components_, g.paths) for g in (Asked(live, named), Asked(here, named))]
        for number, change in enumerate(ROUNDS):
            for graph in (live, here):
                changed(graph, named, change)
                if graph is live and number == 0:
                    lose_workers(spark, live)
            for found, wanted in zip(*asked, strict=True):
                assert rows(found) == rows(wanted), (number, found)
                if number != 1:
                    with pytest.raises(DlogError, match="what the last commit changed is not known any more"):
                        print(found.changes)
                else:
                    assert told(found) == told(wanted)
            if number == 1:
                lose_workers(spark, live)
        assert rows(live.degrees()) == rows(here.degrees())


class Asked:
    """Two questions about a graph."""

    def __init__(self, graph: Any, named: Any) -> None:
        self.components_ = graph.connected_components()
        self.paths = graph.shortest_paths(sources=named(7), weight="weight")


def test_rows_that_are_others_when_spark_reads_them_again_are_told(spark: SparkSession, tmp_path: Any) -> None:
    kept = tmp_path / "edges"
    kept.write_text("2")

    def ends(batches: Any) -> Any:
        for batch in batches:
            yield pa.record_batch({"src": batch.column(0), "dst": pa.array([int(kept.read_text())] * len(batch), pa.int64())})

    graph: Any = dlog.graph(spark.range(2).mapInArrow(ends, "src long, dst long"))
    with graph.live() as live:
        found = live.reachable(1)
        lose_workers(spark, live)
        graph.numbers.numbered_edges.unpersist()
        live.add_edges([(2, 4)])
        live.commit()
        assert rows(found) == [(1,), (2,), (4,)]
        lose_workers(spark, live)
        kept.write_text("3")
        graph.numbers.numbered_edges.unpersist()
        with pytest.raises(DlogError, match="those that it read again are not what they were"):
            print(list(found))
        with pytest.raises(DlogError, match="those that it read again are not what they were"):
            live.degrees()
        live.add_edges([(4, 1)])
        with pytest.raises(DlogError, match="those that it read again are not what they were"):
            live.commit()


def live_of(spark: SparkSession, edges: list[tuple[int, int, int]]) -> Any:
    return dlog.graph(spark.createDataFrame(edges, "src long, dst long, weight int")).live()
