"""A program of its own: sessions of three workers that exchange rows, on executors in JVMs of their own, of which some are
killed; prints what came of it as JSON."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlog.engine.rounds_engine import MAX_RELAYED_ROWS
from tests.dlog.persistence.state_frames import named_parts
from tests.spark.cluster import executors, kill_one

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    import dlog

TEXT = """.decl edge(x: symbol, y: symbol)
.decl reach(x: symbol, y: symbol)
.decl size(x: symbol, n: number)
.input edge
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), reach(y, z).
size(x, n) :- reach(x, _), n = count : { reach(x, _) }.
"""
RING = [(f"n{i}", f"n{(i + 1) % 150}") for i in range(150)]
MORE = [("n3", "out"), ("out", "far")]
WORKERS = 3
KEPT: list[dlog.Session] = []


def session() -> SparkSession:
    from dlog.engine.spark.application import start

    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.executor.cores": "2"}
    return start("local-cluster[2,2,1024]", settings)


def opened(spark: SparkSession, state: str | None, facts: Any = None) -> dlog.Session:
    import dlog

    return dlog.session(TEXT, facts, engine="spark", spark=spark, workers=WORKERS, state=state)


def rows(session: dlog.Session) -> tuple[list[Any], list[Any]]:
    return sorted(session["reach"]), sorted(session["size"])


def expected(edges: list[tuple[str, str]]) -> tuple[list[Any], list[Any]]:
    import dlog

    with dlog.session(TEXT, {"edge": edges}) as session:
        return rows(session)


def told(call: Any) -> tuple[list[str], float]:
    """The codes of what is raised, and how long it takes."""
    from dlog.grammar.diagnostics import DlogError

    started = time.monotonic()
    try:
        call()
    except DlogError as error:
        return [d.code for d in error.diagnostics], time.monotonic() - started
    return [], time.monotonic() - started


def settled(spark: SparkSession) -> None:
    """Waits until Spark has replaced what was killed."""
    from dlog.engine.spark.application import slots

    while len(executors(spark)) < 2 or slots(spark) < 4:
        time.sleep(0.1)


def without_a_state(spark: SparkSession) -> dict[str, Any]:
    """A worker dies between rounds: the session says so from then on, and another one finds the slots free."""
    session = opened(spark, None, {"edge": RING})
    kill_one(spark)
    unseen(session)  # until it dies itself, a worker does not see that its executor has
    session.insert("edge", MORE)
    first, seconds = told(session.commit)
    again, _ = told(session.commit)
    read, _ = told(lambda: list(session["reach"]))
    session.close()
    settled(spark)
    with opened(spark, None, {"edge": RING + MORE}) as other:
        right = rows(other) == expected(RING + MORE)
    return {"codes": [first, again, read], "seconds": seconds, "another is right": right}


def between_rounds(spark: SparkSession) -> dict[str, Any]:
    """With a state it goes on: with a commit, and with reading, also what was at hand before."""
    session = opened(spark, tempfile.mkdtemp(), {"edge": RING})
    kill_one(spark)
    session.insert("edge", MORE)
    session.commit()
    after = rows(session) == expected(RING + MORE)
    settled(spark)
    held = session["size"]
    kill_one(spark)
    read = rows(session) == expected(RING + MORE)
    settled(spark)
    kill_one(spark)
    unseen(session)
    at_hand = held.rows == len(expected(RING + MORE)[1])
    in_spark = held.df.count() == held.rows
    session.remove("edge", MORE)
    session.commit()
    back = rows(session) == expected(RING)
    found = {"round": session.round, "committed": after, "read": read, "at hand": at_hand and in_spark, "back": back}
    session.close()
    return found


def unseen(session: dlog.Session) -> None:
    """Waits until the session's workers are lost and another one than the session has found that."""
    engine: Any = session._engine
    while not (engine.working or engine).resident_workers.is_gone:
        time.sleep(0.1)


def left_open(spark: SparkSession) -> dict[str, Any]:
    """Nobody closes a session whose workers are lost; the process ends all the same."""
    session = opened(spark, tempfile.mkdtemp(), {"edge": RING})
    KEPT.append(session)
    kill_one(spark)
    unseen(session)
    return {"round": session.round}


def amid_a_round(spark: SparkSession) -> dict[str, Any]:
    """A worker dies while the workers exchange rows: half-way through a round as long as another one was, which is tried again
    where that was over before."""
    state = tempfile.mkdtemp()
    session = opened(spark, state, {"edge": RING[:-1]})
    edges = RING[:-1] + cycle("a")
    session.insert("edge", cycle("a"))
    _, seconds = told(session.commit)
    amid, right = False, True
    for name in "bcdefgh":
        session.insert("edge", cycle(name))
        edges += cycle(name)
        amid = amid or killed_amid(spark, session.commit, seconds / 2)
        right = right and rows(session)[1] == expected(edges)[1]
        settled(spark)
        if amid:
            break
    session.close()
    settled(spark)
    with opened(spark, state) as again:
        reopened = rows(again)[1] == expected(edges)[1]
    return {"killed amid": amid, "right": right, "reopened": reopened}


def cycle(name: str) -> list[tuple[str, str]]:
    return [(f"{name}{i}", f"{name}{(i + 1) % 400}") for i in range(400)]


def killed_amid(spark: SparkSession, commit: Callable[[], object], after: float) -> bool:
    """Whether a worker was killed before a commit had ended, which it is to be after so many seconds."""
    killed: list[float] = []

    def strike() -> None:
        time.sleep(after)
        kill_one(spark)
        killed.append(time.monotonic())

    thread = threading.Thread(target=strike)
    thread.start()
    commit()
    ended = time.monotonic()
    thread.join()
    return killed[0] < ended


def with_files(spark: SparkSession) -> dict[str, Any]:
    """A worker dies while rows go into files of a state, and when they are there: workers read them, the driver does not."""
    from dlog.sessions.persistence import bulk_files

    state, many = tempfile.mkdtemp(), MAX_RELAYED_ROWS + 1
    session = opened(spark, state)
    session.insert("edge", spark.range(many).selectExpr("concat('a', id) as x", "concat('b', id) as y"))
    thread = threading.Timer(1.0, kill_one, (spark,))
    thread.start()
    codes, _ = told(session.commit)
    thread.join()
    settled(spark)
    if codes:  # Spark had no time to do it again
        session.commit()
    real, bulk_files.read_parts = bulk_files.read_parts, None  # type: ignore[assignment]
    kill_one(spark)
    session.insert("edge", MORE)
    session.commit()
    settled(spark)
    found = {"codes": codes, "rows": session["reach"].rows - many, "sizes": session["size"].rows - many}
    session._engine.abandon()  # type: ignore[attr-defined]
    session._engines.close()
    settled(spark)
    with opened(spark, state) as again:
        found["reopened"] = again["reach"].rows - many
        found["files"] = {path.name for path in Path(state).glob("*.parquet")} == named_parts(again)
    bulk_files.read_parts = real
    return found


def amid_a_delivery(spark: SparkSession) -> dict[str, Any]:
    """A worker dies while tasks bring it the rows of a DataFrame."""
    session = opened(spark, None, {"edge": RING})
    rows = spark.range(0, 40_000, 1, 4).selectExpr("concat('a', id) as x", "concat('b', id) as y")
    begun: list[float] = []

    def strike() -> None:
        while not any(name.name == "dlog-delivery" for name in threading.enumerate()):
            time.sleep(0.05)
        time.sleep(2.0)
        begun.append(time.monotonic())
        kill_one(spark)

    session.insert("edge", rows.mapInArrow(slowly, rows.schema))
    thread = threading.Thread(target=strike)
    thread.start()
    codes, _ = told(session.commit)
    seconds = time.monotonic() - begun[0]
    thread.join()
    session.close()
    return {"codes": codes, "seconds": seconds}


def slowly(batches: Any) -> Any:
    """Rows that take their time."""
    for batch in batches:
        time.sleep(1.0)
        yield batch


def live_graph(spark: SparkSession) -> dict[str, Any]:
    """Executors die under a live graph: with the workers go rows that Spark keeps, of the beginning and of later changes."""
    import dlog

    spark.sparkContext.setCheckpointDir(tempfile.mkdtemp())
    edges = spark.createDataFrame(RING, "src string, dst string").repartition(4)
    found: dict[str, Any] = {}
    many = spark.range(MAX_RELAYED_ROWS + 1).selectExpr("concat('a', id) as src", "'n0' as dst")
    with dlog.graph(edges).live() as live:
        reached = live.reachable("n0")
        kill_one(spark)
        live.add_edges(MORE)
        live.commit()
        found["committed"] = len(reached)
        settled(spark)
        live.add_edges(many)
        live.remove_edges([("n9", "n10")])
        live.commit()
        kill_one(spark)
        found["read"] = sorted(id for (id,) in reached)
        settled(spark)
        found["asked"] = len(live.bfs("a5"))
    return found


def main(names: list[str]) -> None:
    spark = session()
    try:
        for name in names:
            print(json.dumps({name: globals()[name](spark)}), flush=True)
            settled(spark)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
