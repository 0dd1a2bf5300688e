"""Mistakes that stop a run: what is given to `dlog.run`, what values do to a program, limits."""

from __future__ import annotations

from typing import Final

from tests.run_mistakes.example import Example, python, run, untold

RUNS: Final[dict[str, Example]] = {
    "bad-argument": python(
        "An argument of a function of dlog is not what it may be: the message says what that is.",
        """
import dlog

dlog.run(".decl p(x: number)\\np(1).", threads=0)
""",
    ),
    "bad-columns": python(
        "Columns are given that are not those of the relation, or that are none: give one for each attribute, by its name.",
        """
import dlog

dlog.run(".decl e(x: number, y: number)\\n.input e", facts={"e": {"x": [1, 2], "z": [3, 4]}})
""",
    ),
    "bad-conversion": run(
        "`as(..., symbol)` of a number that no symbol has: `to_string(...)` writes a number as text.",
        "dlog run name.dl",
        ("name.dl", ".decl n(x: number)\nn(1000000).\n.decl p(s: symbol)\np(as(x, symbol)) :- n(x).\n.output p\n"),
    ),
    "bad-fact": python(
        "A row has a value that is not of its column's type, or too few or too many values.",
        """
import dlog

dlog.run(".decl e(x: number)\\n.input e", facts={"e": [(1,), ("two",)]})
""",
    ),
    "bad-rows": python(
        "What is given is no list of rows and no table, or the number of rows is another one than it must be.",
        """
import dlog

dlog.run(".decl e(x: number, y: number)\\n.input e", facts={"e": "1 2"})
""",
    ),
    "division-by-zero": run(
        "A number is divided by zero. A condition before it, `y != 0`, keeps such rows away.",
        "dlog run half.dl",
        ("half.dl", ".decl e(x: number, y: number)\ne(1, 0).\n.decl p(x: number)\np(x / y) :- e(x, y).\n.output p\n"),
    ),
    "not-settled": run(
        "A row depends on itself through a negation or an aggregate, so that each pass over the rules of its relation derives "
        "something else than the one before (the warning `unstratified` tells of such rules). The message names a row that "
        "does not stay; one that depends on it may be named in its place. Take the circle out of the data, or say in the rules "
        "what it means.",
        "dlog run game.dl",
        (
            "game.dl",
            ".decl move(x: symbol, y: symbol)\nmove(\"a\", \"b\"). move(\"b\", \"a\").\n"
            ".decl win(x: symbol)\nwin(x) :- move(x, y), !win(y).\n.output win\n",
        ),
    ),
    "functor-failed": python(
        "A functor of your own has raised an exception, or has given a value of another type than is declared.",
        """
import dlog

program = '''
.functor root(x: number): float
.decl e(x: number)
e(4). e(-1).
.decl p(y: float)
p(@root(x)) :- e(x).
.output p
'''

def root(x):
    if x < 0:
        raise ValueError("there is no root of a negative number")
    return x**0.5

dlog.run(program, functors={"root": root})
""",
        varies=True,
    ),
    "inline-relation": python(
        "An inline relation is asked for, which has no rows: declare it without `inline`.",
        """
import dlog

result = dlog.run(".decl p(x: number) inline\\np(x) :- x = 1.\\n.decl q(x: number)\\nq(x) :- p(x).\\n.output q")
result["p"]
""",
    ),
    "many-captures": python(
        "`regex_captures` takes far more characters out of the texts than these have: leave the look-ahead out of the pattern.",
        """
import dlog

program = '''
.decl text(s: symbol)
.input text
.decl p(s: symbol)
p(s) :- text(t), s = regex_captures("(?=(.*))", t).
.output p
'''
dlog.run(program, facts={"text": [("x" * 6000,)]})
""",
    ),
    "missing-functor": run(
        "A functor is declared and called, and there is no function for it: `-l MODULE` names a module that has one.",
        "dlog run twice.dl",
        ("twice.dl", ".functor twice(x: number): number\n.decl p(x: number)\np(@twice(2)).\n.output p\n"),
    ),
    "negative-weight": python(
        "A weight is negative, where weights only add up: in a `sum` within recursion, or on the edges of a graph.",
        """
import dlog

dlog.graph({"src": [1, 2], "dst": [2, 3], "km": [5, -1]}).shortest_paths(1, weight="km")
""",
    ),
    "no-process": untold(
        "A pattern with references, look-around or captures is matched in a process of its own, and the system starts none.",
        "the system would have to be out of processes",
    ),
    "out-of-memory": run(
        "There is no more memory, or the limit of `--memory` has been reached. The rule that was being evaluated is shown.",
        "dlog run pairs.dl --memory 64M",
        (
            "pairs.dl",
            ".decl n(x: number)\nn(x) :- x = range(0, 3000).\n"
            ".decl p(x: number, y: number)\np(x, y) :- n(x), n(y).\n.output p\n",
        ),
        varies=True,
    ),
    "rule-too-long": untold(
        "A rule hands on more variables from atom to atom than can be: derive a part of its body in a relation of its own.",
        "it takes a rule of some 250,000 variables",
    ),
    "slow-pattern": python(
        "A pattern takes more than ten seconds on a text: one with references or look-around is tried way by way.",
        """
import dlog

program = '''
.decl text(s: symbol)
.input text
.decl p(s: symbol)
p(s) :- text(s), match("(a+)+(?=b)", s).
.output p
'''
dlog.run(program, facts={"text": [("a" * 60,)]})
""",
        slow=True,
    ),
    "too-large": run(
        "A `sum` that is compared within recursion grows beyond what can be compared: sum in greater units.",
        "dlog run own.dl",
        (
            "own.dl",
            """.decl owns(x: number, y: number, n: number)
owns(1, 2, 4611686018427387904). owns(1, 3, 4611686018427387904). owns(1, 4, 4611686018427387904).
owns(2, 5, 1152921504606846976). owns(3, 5, 1152921504606846976). owns(4, 5, 1152921504606846976).
.decl controls(x: number, y: number)
controls(x, x) :- owns(x, _, _).
controls(x, z) :- owns(x, _, _), owns(_, z, _), sum n : { controls(x, y), owns(y, z, n) } > 4611686018427387903.
.output controls
""",
        ),
    ),
    "too-many-iterations": python(
        "Recursion, or a loop of a dataflow, has come to the limit of iterations that was set: does it ever end?",
        """
import dlog

dlog.session(".decl n(x: number)\\nn(0).\\nn(x + 1) :- n(x).", max_iterations=1000)
""",
    ),
    "too-many-rows": python(
        "A relation would have more rows than can be numbered, or an equivalence relation more pairs than can be listed.",
        """
import dlog

program = '''
.decl n(x: number)
n(x) :- x = range(0, 50000).
.decl same(x: number, y: number) eqrel
same(x, y) :- n(x), y = 0.
.output same
'''
list(dlog.run(program)["same"])
""",
    ),
}
