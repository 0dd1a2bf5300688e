"""Mistakes of sessions: of changes and rounds, of questions and proofs, of what follows a session."""

from __future__ import annotations

from typing import Final

from tests.run_mistakes.example import Example, python, run, untold

_SESSION: Final = """
import dlog

session = dlog.session('''
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
''')
session.insert("edge", [(1, 2), (2, 3)])
session.commit()
"""


def _session(meaning: str, lines: str) -> Example:
    return python(meaning, _SESSION + lines)


SESSIONS: Final[dict[str, Example]] = {
    "bad-history": python(
        "`history` is a number of past rounds, or a time for which they are kept.",
        """
import dlog

dlog.session(".decl p(x: number)\\np(1).", history=-1)
""",
    ),
    "bad-order": python(
        "A subscription's `order` is for changes with diffs, of columns that are no records.",
        """
import dlog

session = dlog.session(".decl p(x: number, y: number)\\np(1, 2).")
session.subscribe("p", key="x", order="y")
""",
    ),
    "bad-query": _session(
        "A query is one body of a rule, with rules and facts of its own before it; it reads and writes no files.",
        'session.query("path(1, X). path(2, X).")',
    ),
    "changes-gone": untold(
        "The changes of the last round are asked for while the next commit is running, or after one that failed: a "
        "subscription has those of every round.",
        "it takes two threads, one that commits while the other one asks",
    ),
    "closed-session": _session(
        "The session is closed: nothing can be asked or changed any more. Open another one.",
        """session.close()
session.query("path(1, X)")""",
    ),
    "closed-view": _session(
        "The view of a past round is closed, and what it read may be forgotten: read within its block, or call `at` again.",
        """with session.at(1) as view:
    pass
view["edge"]""",
    ),
    "commit-inside-commit": _session(
        "The callback of a subscription cannot commit, nor what a round of a dataflow calls. They may stage changes.",
        """session.subscribe("path", lambda round, changes: session.commit())
session.insert("edge", (3, 4))
session.commit()""",
    ),
    "commit-inside-transaction": _session(
        "A transaction commits at the end of its block.",
        """with session.transaction():
    session.insert("edge", (3, 4))
    session.commit()""",
    ),
    "derived-relation": _session(
        "Rows are put into a relation that follows from rules. Declared with `.input`, it may have both.",
        'session.insert("path", (1, 9))',
    ),
    "key-violation": python(
        "A subscription's `key` is none, as several rows have the same one: give more columns.",
        """
import dlog

session = dlog.session(".decl p(x: number, y: number)\\np(1, 2).")
followed = session.subscribe("p", key="x")
followed.fetch()
session.insert("p", (1, 3))
session.commit()
followed.fetch()
""",
    ),
    "nested-transaction": _session(
        "A transaction is begun within another one: end that one first.",
        """with session.transaction(), session.transaction():
    session.insert("edge", (3, 4))""",
    ),
    "no-facts": run(
        "Rows that are typed in, or removed, at the prompt are written out in constants.",
        "dlog repl",
        typed=".decl edge(x: number, y: number)\n+edge(x, 9) :- edge(x, 2).\n",
    ),
    "no-rule": _session(
        "`drop_rules` is given what is no rule of the program: write one out as it is there, or name its relation.",
        'session.drop_rules("path(x, y) :- edge(y, x).")',
    ),
    "no-such-row": _session(
        "`why` is asked about a row that does not hold: `why_not` tells what is missing.",
        'session.why("path", (3, 1))',
    ),
    "of-component": python(
        "A rule or a relation comes from a component: an instance keeps all that its component has.",
        """
import dlog

session = dlog.session('''
.comp Graph {
  .decl edge(x: number, y: number)
}
.init g = Graph
''')
session.drop_relation("g.edge")
""",
    ),
    "past-round": _session(
        "Changes are given for a round that is committed, or are asked for of one that is no longer the last: a subscription "
        "has them all.",
        'session.apply([(1, "edge", 1, (3, 4))])',
    ),
    "program-inside-transaction": _session(
        "A transaction changes rows; the program is changed outside of it, in a round of its own.",
        """with session.transaction():
    session.add_rules(".decl loop(x: number)\\nloop(x) :- path(x, x).")""",
    ),
    "relation-in-use": _session(
        "A relation that is to be dropped is read by rules of others: drop these first.",
        'session.drop_relation("edge")',
    ),
    "row-holds": _session(
        "`why_not` is asked about a row that holds: `why` tells from what it follows.",
        'session.why_not("path", (1, 3))',
    ),
    "slow-subscriber": _session(
        'A subscription has ended, as more changes would wait to be taken than its `limit`. With `slow="wait"`, commits wait.',
        """followed = session.subscribe("edge", limit=5)
session.insert("edge", [(n, n + 1) for n in range(100)])
session.commit()
followed.fetch()""",
    ),
    "staged-changes": _session(
        "Changes of rounds are committed while others are staged: commit these first, or roll them back.",
        """session.insert("edge", (3, 4))
session.apply([(2, "edge", 1, (4, 5))])""",
    ),
    "unknown-round": _session(
        "A round is read that is not there yet, or not any more: `history` says how many past ones stay.",
        "session.at(0)",
    ),
}
