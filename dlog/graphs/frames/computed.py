"""Answers that take several runs of programs, on Spark: between the runs rows stay in DataFrames.

Each function is the twin of one in `structure` or `iterated`; those of k-cores and trusses do in rounds, which workers share,
what rules say there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dlog.engine.rounds_engine import MAX_RELAYED_ROWS
from dlog.engine.spark.application import in_tasks
from dlog.graphs.frames.numbers import Numbers, dense, renumbered
from dlog.graphs.frames.running import Answer, SparkRunning
from dlog.graphs.library import Program
from dlog.graphs.mistakes import not_converged
from dlog.graphs.numbered import mixed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# ------------------------------------------------------------------------------------------------ strongly connected components


def strong(numbers: Numbers, running: SparkRunning) -> Answer:
    """Passes of `strongly_connected_components` until every vertex is in a component. Vertices have random numbers."""
    from pyspark.sql import functions as F

    placed, number = dense(numbers.vertex(), F.xxhash64("x"), "x")
    names = number.withColumnRenamed("x", "id").persist()
    part = names.select("number", F.lit(0).cast("bigint").alias("part"))
    edge = renumbered(numbers.edges.select("src", "dst"), names, ("src", "dst"))
    program, passes = Program("strongly_connected_components"), []
    while True:
        done = running.run(program, {"part": part, "edge": edge}, ("component", "rest", "within"))
        passes.append(done)
        if not done["rest"].rows:
            break
        part, edge = done["rest"].df, done["within"].df
    found = reduce(lambda a, b: a.unionAll(b), (done["component"].df.toDF("number", "name") for done in passes))
    members = found.join(names, "number").select(F.col("id").alias("x"), "name")
    least = members.groupBy("name").agg(F.min("x").alias("component"))
    answer = members.join(least, "name").select("x", "component")
    return Answer(answer, (*passes, _PersistedFrame(names), _PersistedFrame(placed)))


# --------------------------------------------------------------------------------------------------------------------- cores


def core_numbers(numbers: Numbers, running: SparkRunning) -> Answer:
    """Peels a session's graph with k = 1, 2, ..."""
    from pyspark.sql import functions as F

    with running.session(Program("k_core", ("CORES=1",)), {"edge": _simple(numbers), "bound": _one(1)}) as session:
        k = 1
        for low in _peeled(session, "core"):
            if low:
                continue
            session.remove("bound", (k,))
            degrees = session["degree"].df
            k = int(degrees.agg(F.min(degrees.columns[1])).first()[0]) + 1
            session.insert("bound", (k,))
        cores = session["core"].df.toDF("x", "core")
    everyone = numbers.vertex().join(cores, "x", "left")
    return Answer(everyone.select("x", F.coalesce("core", F.lit(0).cast("bigint")).alias("core")))


def k_core(numbers: Numbers, running: SparkRunning, k: int) -> Answer:
    """Takes vertices out of a session's graph until none has fewer than k neighbours."""
    with running.session(Program("k_core"), {"edge": _simple(numbers), "bound": _one(k)}) as session:
        for low in _peeled(session, "removed"):
            if not low:
                break
        rows, count = session["degree"].df, session["degree"].rows
        return Answer(rows.select(rows.columns[0]), (), count)


def _peeled(session: Any, into: str) -> Iterator[int]:
    """Rounds in which the vertices that are too low go, into an input: yields how many, before each commit, and ends when there
    is none left."""
    while session["degree"].rows:
        low = session["low"]
        count: int = low.rows
        if count:
            session.insert(into, low.to_arrow() if count <= MAX_RELAYED_ROWS else low.df)
        yield count
        session.commit()


def _simple(numbers: Numbers) -> DataFrame:
    """Each pair of joined vertices once, the lesser first."""
    from pyspark.sql import functions as F

    edges = numbers.edges.where("src <> dst")
    return edges.select(F.least("src", "dst").alias("x"), F.greatest("src", "dst").alias("y")).distinct()


def k_truss(numbers: Numbers, running: SparkRunning, k: int) -> Answer:
    """Takes edges out until none is in fewer than k - 2 triangles."""
    from pyspark.sql import functions as F

    simple = _simple(numbers)
    if k <= 2:
        return Answer(simple)
    facts = {"vertex": numbers.vertex(), "edge": simple}
    done = running.run(Program("triangle_support"), facts, ("support",))
    support = done["support"].df.toDF("x", "y", "triangles")
    left, gone = support.where(F.col("triangles") >= k - 2), support.where(F.col("triangles") < k - 2).select("x", "y")
    going = not gone.isEmpty()
    while going:
        before, done = done, running.run(Program("k_truss"), {"edge": left, "gone": gone, "bound": _one(k)}, ("kept", "low"))
        before.release()
        left, gone, going = done["kept"].df, done["low"].df, done["low"].rows > 0
    return Answer(left.select(*left.columns[:2]), (done,))


# -------------------------------------------------------------------------------------------------------------- by iteration


def pagerank(
    numbers: Numbers, running: SparkRunning, rules: Any, tolerance: float, iterations: int | None, limit: int, block: int
) -> Answer:
    """Blocks of steps until one changes little enough, or there were as many as are allowed."""
    from pyspark.sql import functions as F

    from dlog.graphs.running import as_facts

    size = numbers.vertex_ids.count
    facts = {"vertex": numbers.vertex(), "edge": numbers.edge(rules.form, rules.weight, True), **as_facts(rules.facts)}
    answer = Answer(numbers.vertex().select("x", F.lit(1 / max(size, 1)).alias("value")), (), size)
    macros = (*rules.program.macros, "RANKS_GIVEN=1", "CHANGES=1")
    left = limit if iterations is None else iterations
    while left and size:
        steps = min(left, block)
        left -= steps
        wanted = [f"{what}_{n}" for n in range(1, steps + 1) for what in ("change", "rank")]
        done = running.run(Program("pagerank", macros, steps), {**facts, "rank_0": answer.rows}, wanted)
        answer.release()
        settled = [n for n in range(1, steps + 1) if next(iter(done[f"change_{n}"]))[0] < tolerance * size]
        answer = Answer(done[f"rank_{settled[0] if settled else steps}"].df, (done,), size)
        if settled:
            return answer
    if iterations is None and size:
        answer.release()
        raise not_converged(tolerance, limit)
    return answer


def independent_set(numbers: Numbers, running: SparkRunning, seed: int, block: int) -> Answer:
    """The set that a walk through the vertices in random order finds: of graphs of arrays the same one."""
    placed, order = dense(numbers.vertex(), "x")
    vertex = in_tasks(order, _Mixed(seed), "x bigint, priority bigint").persist()
    facts: dict[str, Any] = {
        "vertex": vertex,
        "edge": numbers.edge("plain"),
        "out_0": pa.table({"x": pa.array([], pa.int64())}),
    }
    before: Any = None
    while True:
        wanted = (f"member_{block}", f"out_{block}", f"left_{block}")
        done = running.run(Program("maximal_independent_set", steps=block), facts, wanted)
        if before is not None:
            before.release()
        members, out, left = (done[name] for name in wanted)
        if not next(iter(left))[0]:
            return Answer(members.df, (done, _PersistedFrame(vertex), _PersistedFrame(placed)), members.rows)
        facts["out_0"], before = out.df, done


class _Mixed:
    """For `mapInArrow`: `x` and `number` to `x` and a random number that only the number and the seed decide."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            scattered = mixed(batch.column("number").to_numpy(), self.seed)
            yield pa.RecordBatch.from_arrays([batch.column("x"), pa.array(scattered)], ["x", "priority"])


def _one(value: int) -> pa.Table:
    return pa.table({"k": [value]})


class _PersistedFrame:
    """A DataFrame that Spark keeps, as something to release."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def release(self) -> None:
        self._frame.unpersist()
