"""Sessions: programs whose inputs change. `dlog.session` opens one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from dlog.engine.state.sync import Sync
from dlog.functors import FunctorSource
from dlog.sessions.commits import Round, Transaction
from dlog.sessions.core import Session
from dlog.sessions.follow.changes import Changes
from dlog.sessions.follow.envelopes import Upserts
from dlog.sessions.follow.events import ChangeEvents
from dlog.sessions.follow.subscriptions import Subscription
from dlog.sessions.follow.views import Diff, View
from dlog.sessions.options import ProgramSource, StateSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ChangeEvents", "Changes", "Diff", "Round", "Session", "Subscription", "Transaction", "Upserts", "View", "session"]


def session(
    program: ProgramSource | None,
    facts: StateSource = None,
    *,
    threads: int | None = None,
    memory: int | str | None = None,
    max_iterations: int | None = None,
    history: int | timedelta = 0,
    include: Sequence[str] = (),
    macros: Sequence[str] = (),
    state: str | Path | None = None,
    sync: Sync = "always",
    engine: str = "embedded",
    spark: SparkSession | None = None,
    workers: int | None = None,
    functors: FunctorSource = None,
) -> Session:
    """Opens a session on a program.

    Parameters
    ----------
    program
        A program file, or the text of a program: a string with a line break is text, and so is one that looks like a clause or
        a directive; any other one is a file's name.
    facts
        The folder of the input files, or the rows of input relations by name. They, and the facts of the program's text, are
        the first round; without either the session is at round 0.
    threads
        Default: one per core. In rounds of 20,000 changes and more, and when rules are added beside as much, inputs are
        loaded side by side, and so are strata derived that do not read each other; a single stratum stays on one thread.
    memory
        Bytes above which a commit fails, and so does what would stage more, also as "2G" or "512M".
    max_iterations
        Iterations of a stratum above which a commit fails.
    history
        How many past rounds `at` and `diff` can read, or for how long (a `timedelta`). With a state they are kept in it.
    include, macros
        For the preprocessor, as `-I` and `-M` of `dlog run`.
    state
        A folder in which the session survives: it goes on where the last one with this folder ended, however that ended. A
        commit returns when its rounds are in the log there. `facts` are for a new state only. A program that is not the one
        the state was left with keeps its inputs, with a warning that says what is another; without a program (None) the
        session has that of the state. Close the session, or use `with`: one at a time has the folder.
    sync
        When the log is forced to the disk: "always" before a commit returns; "often", about ten times a second; or "never",
        when the system does. A killed process loses nothing with any of them, a machine without power what was not forced.
    engine
        "embedded", in this process, or "spark": tasks of Spark keep the rows and maintain them, each its share of what can be
        cut, the first of them the rest. Rows may be given as DataFrames, and `s["path"].df` is one. With a state Spark writes
        large ones to its folder, where all tasks see that.
    spark
        The Spark session; default: the active one, else a new one.
    workers
        How many tasks; default: all slots but one.
    functors
        Functions for the functors that the program declares, by name, or modules that have them (see `dlog.functor`).

    >>> import dlog
    >>> with dlog.session('''
    ... .decl edge(x: number, y: number)
    ... .decl path(x: number, y: number)
    ... path(x, y) :- edge(x, y).
    ... path(x, z) :- path(x, y), edge(y, z).
    ... ''') as s:
    ...     s.insert("edge", [(1, 2), (2, 3)])
    ...     _ = s.commit()
    ...     s.remove("edge", (2, 3))
    ...     s.insert("edge", (2, 4))
    ...     round = s.commit()
    ...     sorted(s["path"]), sorted(round.changes("path"))
    ([(1, 2), (1, 4), (2, 4)], [((1, 3), -1), ((1, 4), 1), ((2, 3), -1), ((2, 4), 1)])
    """
    return Session(
        program,
        facts,
        threads=threads,
        memory=memory,
        max_iterations=max_iterations,
        history=history,
        include=include,
        macros=macros,
        state=state,
        sync=sync,
        engine=engine,
        spark=spark,
        workers=workers,
        functors=functors,
    )
