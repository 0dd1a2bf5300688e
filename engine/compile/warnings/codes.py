"""The kinds of warnings: a code for each, by which it can be turned off, what it means, and a program that has it."""

from __future__ import annotations

from typing import Final

from dlog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class WarningKind:
    """`example` is a program with this warning and no other one."""

    meaning: str
    example: str


CODES: Final[dict[str, WarningKind]] = {
    "single-use-variable": WarningKind(
        "A variable occurs once in its clause: it says no more than `_`, and may be another one misspelled. Names that begin "
        "with `_` are not looked at, nor are those in the bodies of aggregates, where they say what is counted.",
        "e(1, 2).\n.decl e(x: number, y: number)\n.decl p(x: number)\n.output p\np(x) :- e(x, y).",
    ),
    "cross-product": WarningKind(
        "Atoms of a body share no variable, directly or through others: every row of one meets every row of the other. "
        "Relations of one row, as constants are written, are not looked at.",
        "e(1). e(2).\n.decl e(x: number)\n.decl p(x: number, y: number)\n.output p\np(x, y) :- e(x), e(y).",
    ),
    "unstratified": WarningKind(
        "A relation depends on what it lacks, or on an aggregate over itself in a way that may have no result. Passes derive "
        "it, each of which reads in negations and aggregates what the one before has derived, until nothing changes. That ends "
        "where no row depends on itself; else the run stops with `not-settled`. Where more rows cannot take others away, one "
        "pass would do, and rounds would maintain it: a note says what is in the way. Totals of totals are not looked at.",
        ".decl move(x: number, y: number)\n.input move\n.decl win(x: number)\n.output win\nwin(x) :- move(x, y), !win(y).",
    ),
    "float-equality": WarningKind(
        "Floats are compared for equality: two ways to compute a number may differ in the last digit.",
        "e(1.5).\n.decl e(x: float)\n.decl p(x: float)\n.output p\np(x) :- e(x), x * 2.0 != 3.0.",
    ),
    "never-filled": WarningKind(
        "A relation that is read or an output has no rule, no fact and no `.input`: it is empty.",
        ".decl e(x: number)\n.output e",
    ),
    "never-read": WarningKind(
        "A relation is neither read by a rule nor an output: its rows have no effect.",
        "e(1). d(1).\n.decl e(x: number)\n.decl d(x: number)\n.output e",
    ),
    "never-fires": WarningKind(
        "A rule derives nothing: its body reads what is always empty, or has a condition that never holds.",
        ".decl p(x: number)\n.output p\np(x) :- p(x).",
    ),
    "unused-override": WarningKind(
        "A component overrides a relation that it does not inherit: the rules of no other component are replaced.",
        ".comp A { .decl p(x: number) overridable\np(1). }\n.comp B : A { .override q\np(2). }\n.init b = B\n.output b.p",
    ),
    "shadowed-declaration": WarningKind(
        "A relation or a type of a component has the name of one outside: within the component, the name is its own. Also a "
        "type that is called `date` or `timestamp` in a program with functors on dates and times.",
        "e(1).\n.decl e(x: number)\n.comp C { .decl e(x: number)\ne(2). }\n.init c = C\n.output e, c.e",
    ),
    "shadowed-variable": WarningKind(
        "A variable of an aggregate's target has the name of one outside. It is another one, which takes all values: the total "
        "here is that of all rows. What is not looked at is `x = min x : { ... }`, where the one outside is the result.",
        "e(1). e(2).\n.decl e(x: number)\n.decl p(x: number, t: number)\n.output p\np(x, t) :- e(x), t = sum x : { e(x) }.",
    ),
    "ineffective-plan": WarningKind(
        "A rule that is not recursive has a plan: it says in which order versions of recursive rules read their atoms.",
        ".decl e(x: number)\n.input e\n.decl p(x: number)\n.output p\np(x) :- e(x). .plan 0: (1)",
    ),
    "ineffective-pragma": WarningKind(
        "A pragma changes nothing: it is unknown, is set again behind it, names a relation that there is not, or is for what "
        "Souffle has and dlog does otherwise.",
        '.pragma "legcy"\n.decl p(x: number)\np(1).\n.output p',
    ),
    "without-output": WarningKind(
        "The program has no `.output` and no `.printsize`: running it shows nothing.",
        "e(1).\n.decl e(x: number)",
    ),
}
