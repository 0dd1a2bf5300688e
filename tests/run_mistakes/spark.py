"""Mistakes of Spark: of its sessions, its DataFrames and what it reads and writes."""

from __future__ import annotations

from typing import Final

from tests.run_mistakes.example import Example, python, untold

_START: Final = """import dlog
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
"""
_COPY: Final = ".decl e(x: number)\\n.input e\\n.decl p(x: number)\\np(x) :- e(x).\\n.output p"


def _spark(meaning: str, lines: str) -> Example:
    return python(meaning, _START + lines, spark=True)


SPARK: Final[dict[str, Example]] = {
    "another-checkpoint": _spark(
        "A stream's checkpoint is not the one with which the session's batches came: they would be taken for known.",
        f"""session = dlog.session("{_COPY}")
session.commit(mark=7)
numbers = spark.readStream.format("rate").load().selectExpr("value x")
dlog.stream(session, {{"e": numbers}}, checkpoint="new")""",
    ),
    "bad-input": _spark(
        "The columns of a DataFrame are not those of the relation, or of other types: cast them.",
        f"""numbers = spark.range(3).selectExpr("cast(id as double) x")
dlog.run("{_COPY}", {{"e": numbers}}, engine="spark")""",
    ),
    "dynamic-allocation": untold(
        "A session on Spark keeps its tasks, which dynamic allocation would take away: start the application without it.",
        "it takes an application that is started so",
    ),
    "no-spark": python(
        "There is no Spark: the packages are not installed, or there is no session, or it is one of Spark Connect.",
        """
import dlog

dlog.graph([("a", "b")]).degrees().df
""",
    ),
    "no-workers": untold(
        "The workers of a session are gone: the SparkSession was stopped, or Spark lost them. Open the session again; with "
        "`state=` it goes on where it ended. A process that was forked has no workers of sessions that were open before.",
        "it takes a process of Spark's that is killed",
    ),
    "not-on-spark": _spark(
        "The program numbers or limits something in one place: one worker can run it, `workers=1`.",
        """words = '''.decl word(x: symbol)
word("a"). word("b").
.decl n(x: number)
n(ord(x)) :- word(x).
.output n
'''
dlog.run(words, engine="spark", workers=2)""",
    ),
    "other-rows": untold(
        "Spark lost rows of a graph and read them again, and they are others now: make the graph anew, of files or of a "
        "checkpoint.",
        "Spark has to lose rows",
    ),
    "spark-failed": _spark(
        "Spark could not do what it was asked: the message has its reason.",
        f"""numbers = spark.range(3).selectExpr("cast(raise_error('no number') as long) x")
dlog.run("{_COPY}", {{"e": numbers}}, engine="spark")""",
    ),
    "too-few-slots": _spark(
        "More workers are asked for than tasks run at once: Spark would wait for ever.",
        f"""dlog.run("{_COPY}", {{"e": [(1,)]}}, engine="spark", workers=1000)""",
    ),
    "torn-round": untold(
        "A round failed on some workers after others had finished it, and cannot be taken back: open the session again.",
        "workers have to fail at different steps of one round",
    ),
    "unreadable-source": _spark(
        "Spark cannot read what an `.input` with `IO=spark` names.",
        """program = '.decl e(x: number)\\n.input e(IO=spark, format=parquet, path="nowhere")\\n.output e\\n'
dlog.run(program, ".", engine="spark")""",
    ),
    "unsteady-rows": untold(
        "The rows of a DataFrame differ from one reading to the next: keep them, by `persist()`.",
        "it takes rows that are wrong when they are read first, and not when they are read again",
    ),
    "unwritable-target": _spark(
        "Spark cannot write what an `.output` with `IO=spark` names.",
        """
import os

folder = os.path.abspath("numbers")
spark.range(3).write.parquet(folder)
program = f'.decl p(x: number)\\np(1).\\n.output p(IO=spark, format=parquet, path="{folder}", mode=errorifexists)\\n'
dlog.run(program, output=".", engine="spark")""",
    ),
}
