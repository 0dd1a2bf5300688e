"""Mistakes of dataflows, `dlog.dataflow`."""

from __future__ import annotations

from typing import Final

from tests.run_mistakes.example import Example, python


def _flow(meaning: str, lines: str, names: str = "Dataflow") -> Example:
    return python(
        meaning, f"from dlog.dataflow import {names}\n\nflow = Dataflow()\nnumbers = flow.input(x=int, y=int)\n{lines}"
    )


def _rules(meaning: str, lines: str) -> Example:
    made = 'flow = Dataflow()\nnumbers = flow.input("pairs", x=int, y=int)'
    return python(meaning, f"import dlog\nfrom dlog.dataflow import Dataflow\n\n{made}\n{lines}")


DATAFLOWS: Final[dict[str, Example]] = {
    "bad-cast": _flow(
        "A value that comes is none of the kind that it is cast to: a text that is no number, a float beyond 64 bits. "
        "There is no null for it, and the batch has failed.",
        """names = flow.input(name=str)
names.map(number=col("name").cast(int)).capture()
names.insert(["seven"])
flow.commit()""",
        "Dataflow, col",
    ),
    "bad-expression": _flow(
        "An operator or function of an expression is not for values of these kinds: `+`, `-`, `*` and `/` are for numbers, "
        "`+` and `.str` for texts, and `when` chooses between values of one kind.",
        'names = flow.input(name=str)\nnames.map(half=col("name") / 2)',
        "Dataflow, col",
    ),
    "bad-import": _flow(
        "`import_` takes an arrangement of the dataflow that this one was made `beside`, from its root scope; a "
        "session one of its collections.",
        'Dataflow().import_(numbers.arrange_by_key("x"))',
    ),
    "bad-time": _flow(
        "A time is none of this scope, or an operator would move updates to earlier times: these only move on.",
        """numbers.delay(lambda time: 0).capture()
flow.advance_to(3)
numbers.insert([(1, 2)])
flow.commit()""",
    ),
    "batches-merged": _flow(
        "A trace is to be read through a frontier where it has given up that batches are kept apart: they may be merged there.",
        """trace = numbers.arrange_by_key("x").trace()
flow.advance_to(7)
trace.set_physical_compaction(5)
trace.set_physical_compaction(3)""",
    ),
    "broken-law": _flow(
        "A `group` or `semigroup` of one's own is none: a few elements of each batch are looked at, and the message says which "
        "law they break. Sums would depend on the order of rows.",
        """differences = group.of(int, zero=0, plus=lambda a, b: a - b, negate=lambda a: -a)
numbers.explode("x", diff=differences("y")).count("y").capture()
numbers.insert([(1, 2)])
flow.commit()""",
        "Dataflow, group",
    ),
    "dataflow-begun": _flow(
        "Operators are added once rounds have been done, which they would have missed: make them before the first commit. "
        "Of a session's relations another dataflow can be made then.",
        "flow.commit()\nnumbers.distinct()",
    ),
    "dataflow-failed": _flow(
        "A batch has failed half way, so that the dataflow can go on no longer, nor be read: make it anew.",
        """numbers.assert_empty()
numbers.insert([(1, 2)])
try:
    flow.commit()
except dlog.DlogError:  # `not-empty`
    flow.commit()""",
        "Dataflow\nimport dlog",
    ),
    "defined-twice": _flow(
        "A variable of a loop is given a second definition: it has one, which may be a `concat` of several collections.",
        """loop = flow.scope.loop()
again = Variable(loop, numbers.enter(loop))
again.set(again.distinct())
again.set(again.distinct())""",
        "Dataflow, Variable",
    ),
    "diff-overflow": _flow(
        "A sum, or how often rows are there, would need more than 64 bits: is a `distinct` missing before a join?",
        """numbers.join(numbers.rename(x="x", z="y")).capture()
numbers.update([(1, 2)], 2**40)
flow.commit()""",
    ),
    "diffs-no-integers": _flow(
        "An operator needs to know how often rows are there, and `explode` has given them other diffs: add these up first.",
        'numbers.explode("x", diff=(1, col("y"))).watermark("x", lateness=5)',
        "Dataflow, col",
    ),
    "fed-twice": _flow(
        "A collection is to feed a relation that another one feeds already: feed it one, which may be their `concat`.",
        """s = dlog.session(".decl r(x: number, y: number)")
s.feed("r", numbers)
s.feed("r", numbers.distinct())""",
        "Dataflow\nimport dlog",
    ),
    "import-behind": _flow(
        "A dataflow is to do rounds that the one has not done from which it imports an arrangement: commit there first.",
        """other = Dataflow(beside=flow)
other.import_(numbers.arrange_by_key("x")).collection.capture()
other.commit()""",
    ),
    "negative-multiplicity": _rules(
        "Rows of an input are removed more often than they were inserted, which a dataflow takes, and rules do not.",
        """s = dlog.rules(numbers=numbers.map("x")).session()
s.remove("pairs", (1, 2))
s.commit()""",
    ),
    "never-defined": _flow(
        "A dataflow is to run while a variable of a loop has no definition, without which it would always be empty: `set` it.",
        """loop = flow.scope.loop()
Variable(loop, numbers.enter(loop)).leave().capture()
flow.commit()""",
        "Dataflow, Variable",
    ),
    "no-altneu-scope": _flow(
        "`integrate` and `neu` are for what is in an alt/neu scope: `differentiate` brings a collection into one.",
        "numbers.integrate()",
    ),
    "no-loop": _flow(
        "A variable is made outside of a loop: `scope.loop()` makes one.",
        "Variable(flow.scope, numbers)",
        "Dataflow, Variable",
    ),
    "no-scope-around": _flow(
        "A collection of the root scope is to leave it: `leave` is for what is in a loop, or in another scope.",
        "numbers.leave()",
    ),
    "no-shared-columns": _flow(
        "A join without `on` is by the columns that both sides have, and there are none: name the key of each side.",
        "names = flow.input(name=str)\nnumbers.join(names)",
    ),
    "no-truth-value": _flow(
        "An expression over columns is used as a condition of Python: `&`, `|` and `~` stand for `and`, `or` and `not`.",
        'numbers.filter(col("x") > 1 and col("y") > 1)',
        "Dataflow, col",
    ),
    "not-a-set": _rules(
        "Rows of an input that is no set have numbers: `insert`, `remove` and `update` change it, and `sets=` makes it one.",
        """s = dlog.rules(numbers=numbers.map("x")).session()
s.upsert("pairs", (1, 2))""",
    ),
    "not-as-rules": _rules(
        "An operator of a collection cannot be said by rules, or not where it stands: the notes say what can be done instead.",
        'dlog.rules(sessions=numbers.session_window("x", 10))',
    ),
    "not-empty": _flow(
        "A collection has a row, and `assert_empty` says that it never has one.",
        "numbers.assert_empty()\nnumbers.insert([(1, 2)])\nflow.commit()",
    ),
    "not-equal": _flow(
        "Two collections differ, and `assert_eq` says that they never do: the message says in which row, and which has it.",
        "numbers.assert_eq(numbers.distinct())\nnumbers.update([(1, 2)], 2)\nflow.commit()",
    ),
    "partially-ordered": _flow(
        "An operator needs times in one order, and within a loop rounds have iterations beside them: use it outside.",
        """def step(inner):
    other = inner.rename(x="x", z="y")
    return inner.asof_join(other, retract="original")

numbers.iterate(step)""",
    ),
    "repeated-column": _flow(
        "Two columns of one collection would have the same name: rename one of them.",
        'numbers.map("x", x=col("y"))',
        "Dataflow, col",
    ),
    "round-done": _flow(
        "Rows are given for a round that has been done: give them for the present one, or for a later one.",
        "flow.advance_to(3)\nnumbers.insert([(1, 2)], at=1)",
    ),
    "row-gone": _flow(
        "A row goes from a collection of which `insert_only`, or a semigroup among its diffs, has said that none does: leave "
        "it out there, and rows may go.",
        """numbers.max("y", by="x", insert_only=True).capture()
numbers.remove([(1, 2)])
flow.commit()""",
    ),
    "time-compacted": _flow(
        "A time is read whose updates have been merged with later ones: `history=True` keeps them apart.",
        """seen = numbers.capture()
numbers.insert([(1, 2)])
flow.advance_to(5)
seen.counts(1)""",
    ),
    "time-incomplete": _flow(
        "A time is read at which updates may still come: commit, or advance, beyond it first.",
        """seen = numbers.capture(history=True)
numbers.insert([(1, 2)])
flow.commit()
seen.counts(5)""",
    ),
    "too-many-events": _flow(
        "Windows and folds make an event of each time that a row is there, and these are too many: is `distinct` meant?",
        """numbers.moving("x", rows=3, total=moving.sum("y")).capture()
numbers.update([(1, 2)], 2**31)
flow.commit()""",
        "Dataflow, moving",
    ),
    "too-many-numbers": _flow(
        "`generate_series` makes a row of each number between two bounds, `sliding_window` of each window: there are too many.",
        """numbers.generate_series("x", "y").capture()
numbers.insert([(0, 2**50)])
flow.commit()""",
    ),
    "trace-dropped": _flow(
        "A trace is used that has been dropped: take another one of the arrangement.",
        """with numbers.arrange_by_key("x").trace() as trace:
    flow.commit()
trace.cursor()""",
    ),
    "two-dataflows": _flow(
        "Two collections are of two dataflows: make both in one, or import an arrangement of the other one. Those of a session "
        "are of one dataflow if no commit is between.",
        "numbers.concat(Dataflow().input(x=int, y=int))",
    ),
    "two-scopes": _flow(
        "Two collections are in two scopes: bring one into that of the other, by `enter` or `leave`.",
        "numbers.iterate(lambda inner: inner.concat(numbers).distinct())",
    ),
    "unknown-column": _flow(
        "There is no column of that name: the message lists those that there are.",
        'numbers.map("z")',
    ),
    "unnamed-input": _rules(
        "Collections are to become rules, and an input that they read has no name, which its relation needs.",
        "dlog.rules(found=flow.input(x=int).distinct())",
    ),
    "unlike-collections": _flow(
        "Two collections that are put together do not have the same columns, or diffs: `map` and `rename` make them alike.",
        "numbers.concat(flow.input(x=int, z=int))",
    ),
    "unlike-columns": _flow(
        "Columns by which collections are joined, or that feed a relation, are of two kinds: `map` makes them of one.",
        'numbers.join(flow.input(x=str, z=int), on="x")',
    ),
    "window-overflow": _flow(
        "A window has a bound that is no number of 64 bits, or, of floats, not told apart: leave such times out by a `filter`.",
        """numbers.tumbling_window("x", 10).capture()
numbers.insert([(2**63 - 1, 2)])
flow.commit()""",
    ),
}
