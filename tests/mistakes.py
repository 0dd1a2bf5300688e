"""The mistakes of programs, by their codes: what each means, and a program that has it and no other one.
`tests.reference` prints the page, `tests.test_reference` holds it."""

from __future__ import annotations

from typing import Final

_E: Final = ".decl e(x: number)\n.input e\n"
_PAIRS: Final = ".decl e(x: number, y: number)\n.input e\n"

MISTAKES: Final[dict[str, tuple[str, str]]] = {
    "address": (
        "A number written as an IP address has four parts from 0 to 255.",
        ".decl a(n: number)\na(192.168.0.256).",
    ),
    "aggregate-target": (
        "An aggregate of a functor of one's own has no value to aggregate.",
        ".functor f(state: number, x: number): number\n" + _E + ".decl p(n: number)\np(n) :- n = @@f : 0, { e(_) }.",
    ),
    "aggregate-witness": (
        "A variable of an aggregate's body is used outside, where it has no one value: only `min` and `max` have a witness.",
        _PAIRS + ".decl p(x: number, n: number)\np(x, n) :- n = sum y : { e(x, y) }.",
    ),
    "ambiguous-record": (
        "Nothing says of which type a record is.",
        ".type A = [x: number]\n.decl p(n: number)\np(1) :- nil != nil.",
    ),
    "bad-date": (
        "A literal is no day, or no time of day.",
        '.decl p(d: date)\np(date("2026-02-30")).',
    ),
    "bad-eqrel": (
        "An equivalence relation has two attributes of one type.",
        ".decl same(x: number, y: symbol) eqrel\n.output same",
    ),
    "bad-override": (
        "A component overrides a relation that is not `overridable`, or that it declares itself.",
        ".comp A { .decl p(x: number)\np(1). }\n.comp B : A { .override p\np(2). }\n.init b = B",
    ),
    "bad-plan": (
        "A plan does not name each atom of the body once, or it is for a version of the rule that there is not.",
        _PAIRS + ".decl p(x: number, y: number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z). .plan 0: (1)\n.output p",
    ),
    "bad-pragma": (
        "A pragma has a value that it cannot have, or is one with which Souffle would not run the program.",
        '.pragma "word-size" "16"\n.decl p(x: number)',
    ),
    "bad-subtype": (
        "The type behind `<:` is a record, a union or an algebraic data type where it cannot be.",
        ".type R = [x: number]\n.type S <: R\n.decl p(s: S)",
    ),
    "bad-union": (
        "The types of a union have different kinds of values.",
        ".type A <: number\n.type B <: symbol\n.type U = A | B\n.decl p(u: U)",
    ),
    "choice-domain": (
        "A choice domain names an attribute that there is not, or stands where rows are not chosen.",
        ".decl p(x: number) choice-domain y\np(1).",
    ),
    "counter-in-fact": (
        "`autoinc()` numbers the matches of a rule, and a fact has none.",
        ".decl p(x: number)\np(autoinc()).",
    ),
    "cyclic-inheritance": (
        "A component inherits from itself.",
        ".comp A : B { }\n.comp B : A { }",
    ),
    "cyclic-type": (
        "A type is defined by itself alone.",
        ".type A = B\n.type B = A",
    ),
    "debug-delta": (
        "A relation that gets its rows by `debug_delta` has no others.",
        _E + ".decl d = debug_delta(e)\nd(x, 0) :- e(x).\n.output d",
    ),
    "disjoint-types": (
        "Values are compared that cannot be equal, as their types have none in common.",
        ".type A <: number\n.type B <: number\n.decl a(x: A) input\n.decl b(x: B) input\n.decl p(x: A)\np(x) :- a(x), b(x).",
    ),
    "duplicate-attribute": (
        "A relation has two attributes of one name.",
        ".decl p(x: number, x: number)",
    ),
    "duplicate-base": (
        "A component inherits from another one twice.",
        ".comp A<T> { }\n.comp B : A<number> { }\n.comp C : B, A<symbol> { }\n.init c = C",
    ),
    "duplicate-branch": (
        "Two branches of algebraic data types have one name, so that it would not say the type.",
        ".type A = X {} | Y {}\n.type B = X {}",
    ),
    "duplicate-component": ("A component is defined twice.", ".comp A { }\n.comp A { }"),
    "duplicate-directive": (
        "A limit is given twice.",
        _E + ".limitsize e(n=1)\n.limitsize e(n=2)",
    ),
    "duplicate-field": ("A record has two fields of one name.", ".type R = [x: number, x: number]"),
    "duplicate-functor": (
        "A functor is declared twice.",
        ".functor f(x: number): number\n.functor f(x: symbol): number",
    ),
    "duplicate-instance": ("Two instances have one name.", ".comp A { }\n.init a = A\n.init a = A"),
    "duplicate-relation": ("A relation is declared twice.", ".decl p(x: number)\n.decl p(x: number)"),
    "duplicate-type": ("A type is defined twice.", ".type A <: number\n.type A <: symbol"),
    "endless-components": (
        "An instance would hold another one of its own component, and so on.",
        ".comp A { .init a = A }\n.init a = A",
    ),
    "escape": (
        "A backslash in a string stands before a character that it does not.",
        '.decl p(x: symbol)\np("a\\q").',
    ),
    "event": (
        "An event, `@r(...)`, is of a relation with rows, and stands once in the body of a rule, neither negated nor in an "
        "aggregate.",
        _E + ".decl p(x: number)\np(x) :- e(x), !@e(x + 1).",
    ),
    "functor-types": (
        "The result of a functor that is used as an aggregate is not of the type of its state.",
        ".functor f(state: number, x: number): symbol\n" + _E + ".decl p(s: symbol)\np(s) :- s = @@f x : 0, { e(x) }.",
    ),
    "inline-counter": (
        "`autoinc()` stands in a rule that takes the place of atoms.",
        _E + ".decl q(n: number) inline\nq(autoinc()) :- e(_).\n.decl p(n: number)\np(n) :- q(n).",
    ),
    "inline-cycle": (
        "Relations that take the place of each other's atoms would do so for ever.",
        ".decl a(x: number) inline\n.decl b(x: number) inline\na(x) :- b(x).\nb(x) :- a(x).",
    ),
    "inline-io": (
        "An inline relation has no rows to read or to write.",
        ".decl a(x: number) inline\na(x) :- x = 1.\n.output a",
    ),
    "inline-negation": (
        "The rules of an inline relation cannot take the place of a negated atom, as they bind variables of their own.",
        _PAIRS + ".decl a(x: number) inline\na(x) :- e(x, y), y > 1.\n.decl p(x: number)\np(x) :- e(x, _), !a(x).",
    ),
    "lattice": (
        "A lattice is not declared as one, or its values stand where they cannot be joined.",
        ".lattice number<> { Bottom -> 0 }\n.decl p(x: number, v: number<>)",
    ),
    "literal-range": (
        "A number does not fit into its type.",
        ".decl p(x: number)\np(9223372036854775808).",
    ),
    "misplaced-print": (
        "`print(...)` stands beside the conditions of a body, not within an aggregate.",
        _E + ".decl p(n: number)\np(n) :- n = count : { e(x), print(x) }.",
    ),
    "mixed-dates": (
        "Dates, times and other numbers are mixed.",
        ".decl p(d: date)\n.input p\n.decl q(h: number)\nq(hour(d)) :- p(d).",
    ),
    "mutual-aggregates": (
        "Two aggregates need each other's values.",
        _PAIRS + ".decl p(a: number, b: number)\np(a, b) :- a = sum x : { e(x, b) }, b = sum x : { e(x, a) }.",
    ),
    "name-clash": (
        "A relation has the name of something else.",
        ".comp a { }\n.decl a(x: number)\n.init a = a",
    ),
    "not-a-subtype": (
        "Values go to an attribute whose type is narrower; `as(x, T)` says that they are of that type.",
        ".type Even <: number\n" + _E + ".decl p(x: Even)\np(x) :- e(x).",
    ),
    "not-stratified": (
        "A relation that does not keep all of its rows depends on what it lacks, or on an aggregate over itself; or one "
        "depends on itself in the same round through an event or the bounds of `now()`.",
        _E + ".decl p(x: number) choice-domain x\np(x) :- e(x), !p(x).",
    ),
    "now": (
        "`now()`, the round, is only compared, with numbers, beside the atoms of a rule.",
        _E + ".decl p(x: number, n: number)\np(x, n) :- e(x), n = now().",
    ),
    "past-atom": (
        "Past rounds are read only, in sessions, of relations that have rows.",
        ".decl p(x: number)\np@-1(1).",
    ),
    "preprocessor": ("A directive of the preprocessor is wrong.", "#if 1\n.decl p(x: number)"),
    "qualifier": ("A qualifier is given twice, or contradicts another one.", ".decl p(x: number) input output input"),
    "recursive-counter": (
        "`autoinc()` stands in a recursive rule, which would never have all matches.",
        _E + ".decl p(x: number)\np(x) :- e(x).\np(autoinc()) :- p(x), x < 3.",
    ),
    "redefined-type": ("A type has the name of one that is built in.", ".type number <: symbol"),
    "subsumption": (
        "A subsumption is between two rows of one relation that has attributes.",
        ".decl p(x: number)\n.decl q(x: number)\np(1).\np(x) <= q(y) :- x < y.",
    ),
    "syntax": ("The text is no program.", ".decl p(x: number)\np(1)\np(2)."),
    "too-many-alternatives": (
        "Disjunctions within each other multiply to more rules than are made.",
        _E + ".decl p(x: number)\np(x) :- e(x)" + ", (x > 1 ; x < 9)" * 20 + ".",
    ),
    "type-mismatch": (
        "A value has another type than its place.",
        '.decl p(x: number)\np("one").',
    ),
    "ungrounded-variable": (
        "Nothing gives a variable its values: a variable of a rule occurs in an atom that is not negated, or is equal to what "
        "others give.",
        _E + ".decl p(x: number, y: number)\np(x, y) :- e(x), y > x.",
    ),
    "unknown-branch": (
        "No algebraic data type has a branch of that name.",
        ".type A = Some {x: number} | None {}\n.decl p(a: A)\np($Sone(1)).",
    ),
    "unknown-component": ("There is no component of that name.", ".comp Graph { }\n.init g = Grahp"),
    "unknown-functor": ("A functor is neither built in nor declared.", ".decl p(x: number)\np(@twice(2))."),
    "unknown-relation": ("There is no relation of that name.", ".decl edge(x: number)\nedge(1).\n.output egde"),
    "unknown-type": ("There is no type of that name.", ".decl p(x: nubmer)"),
    "unsupported": (
        "Something is understood and does not run yet.",
        ".type R = [x: number]\n" + _E + ".decl p(r: R)\np(as(x, R)) :- e(x).",
    ),
    "wildcard-value": ("`_` stands where a value is needed.", _E + ".decl p(x: number)\np(_) :- e(_)."),
    "wrong-arity": (
        "An atom, a record or a call has more or fewer arguments than there are.",
        _E + ".decl p(x: number)\np(x) :- e(x, x).",
    ),
}
