"""What each construct parses to, how operators bind, and where nodes are."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.grammar import words
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.parser import GRAMMAR, parse
from dlog.grammar.source import NOWHERE, Source, Span
from dlog.grammar.syntax import (
    AdtDecl,
    AggregateTerm,
    And,
    Atom,
    Attribute,
    Branch,
    BranchTerm,
    Call,
    Cast,
    Clause,
    ComponentDecl,
    ComponentInit,
    ComponentType,
    Constraint,
    Counter,
    DebugDelta,
    Directive,
    ExecutionPlan,
    FunctionalDependency,
    FunctorDecl,
    Item,
    LatticeDecl,
    Nil,
    Not,
    Number,
    Or,
    Override,
    Pragma,
    RecordDecl,
    RecordTerm,
    RelationDecl,
    String,
    Subsumption,
    SubtypeDecl,
    Term,
    Truth,
    UnionDecl,
    Variable,
    Wildcard,
)
from tests.examples import examples


def items(text: str) -> tuple[Item, ...]:
    return parse(Source(text)).items


def only(text: str) -> Item:
    (item,) = items(text)
    return item


def term(text: str) -> Term:
    clause = only(f"p({text}).")
    assert isinstance(clause, Clause)
    (argument,) = clause.heads[0].args
    return argument


def body(text: str) -> object:
    clause = only(f"p() :- {text}.")
    assert isinstance(clause, Clause)
    return clause.body


def grouped(term: Term) -> str:
    """The term with all its parentheses."""
    match term:
        case Call(name, (left, right)):
            return f"({grouped(left)} {name} {grouped(right)})"
        case Call(name, (operand,)):
            return f"({name} {grouped(operand)})"
        case Variable(name):
            return name
        case Number(text):
            return text
    raise AssertionError(term)


X, Y = Variable("x"), Variable("y")
P = Atom("p", ())

ITEMS = {
    ".decl r()": RelationDecl(("r",), ()),
    ".decl a, b(x: number)": RelationDecl(("a", "b"), (Attribute("x", "number"),)),
    ".decl r(x: C.T, y: symbol) brie inline input": RelationDecl(
        ("r",), (Attribute("x", "C.T"), Attribute("y", "symbol")), ("brie", "inline", "input")
    ),
    ".decl r(x: L<>)": RelationDecl(("r",), (Attribute("x", "L<>"),)),
    ".decl r(a: t, b: t) choice-domain a, (a, b)": RelationDecl(
        ("r",),
        (Attribute("a", "t"), Attribute("b", "t")),
        (),
        (FunctionalDependency(("a",)), FunctionalDependency(("a", "b"))),
    ),
    ".type T": SubtypeDecl("T", "symbol"),
    ".number_type T": SubtypeDecl("T", "number"),
    ".symbol_type T": SubtypeDecl("T", "symbol"),
    ".type T <: number": SubtypeDecl("T", "number"),
    ".type T = A": UnionDecl("T", ("A",)),
    ".type T = A | C.B | D": UnionDecl("T", ("A", "C.B", "D")),
    ".type T = []": RecordDecl("T", ()),
    ".type T = [head: number, tail: T]": RecordDecl("T", (Attribute("head", "number"), Attribute("tail", "T"))),
    ".type T = A {}": AdtDecl("T", (Branch("A", ()),)),
    ".type T = A { x: T } | B {}": AdtDecl("T", (Branch("A", (Attribute("x", "T"),)), Branch("B", ()))),
    ".functor f(): number": FunctorDecl("f", (), "number"),
    ".functor f(number, s: symbol): float stateful": FunctorDecl(
        "f", (Attribute("", "number"), Attribute("s", "symbol")), "float", True
    ),
    ".input r": Directive("input", ("r",)),
    ".output r()": Directive("output", ("r",)),
    ".printsize a, b.c": Directive("printsize", ("a", "b.c")),
    '.input r(IO=file, delimiter="\\t", n=5, headers=true)': Directive(
        "input", ("r",), (("IO", "file"), ("delimiter", "\t"), ("n", "5"), ("headers", "true"))
    ),
    ".limitsize r(n=10)": Directive("limitsize", ("r",), (("n", "10"),)),
    '.pragma "legacy"': Pragma("legacy"),
    '.pragma "magic-transform" "*"': Pragma("magic-transform", "*"),
    "p(). ": Clause((P,)),
    "p() :- q().": Clause((P,), Atom("q", ())),
    "p(), q() :- r().": Clause((P, Atom("q", ())), Atom("r", ())),
    "p() :- q(). .plan 0: (1, 2), 1: ()": Clause((P,), Atom("q", ()), ExecutionPlan(((0, (1, 2)), (1, ())))),
    "p() :- q(). .plan 0: (01, 0x2, 1_0)": Clause((P,), Atom("q", ()), ExecutionPlan(((0, (1, 2, 10)),))),
    f"p() :- q(). .plan 0: ({5000 * '1'})": Clause((P,), Atom("q", ()), ExecutionPlan(((0, (10**20,)),))),
    "r(x) <= r(y) :- x < y.": Subsumption(Atom("r", (X,)), Atom("r", (Y,)), Constraint("<", X, Y)),
    ".init c = C<T, U>": ComponentInit("c", ComponentType("C", ("T", "U"))),
    ".comp C {}": ComponentDecl(ComponentType("C"), (), ()),
    ".comp C<T> : A, B<T> { .override r p(). .init d = D }": ComponentDecl(
        ComponentType("C", ("T",)),
        (ComponentType("A"), ComponentType("B", ("T",))),
        (Override("r"), Clause((P,)), ComponentInit("d", ComponentType("D"))),
    ),
    ".lattice L<> { Bottom -> $B(), Lub -> @lub( _,_ ) }": LatticeDecl(
        "L", (("Bottom", BranchTerm("B", ())), ("Lub", Call("@lub", (Wildcard(), Wildcard()))))
    ),
}


@pytest.mark.parametrize(("text", "item"), ITEMS.items(), ids=ITEMS.keys())
def test_item(text: str, item: Item) -> None:
    assert only(text) == item


TERMS: dict[str, Term] = {
    "x": X,
    "?x": Variable("?x"),
    "_x": Variable("_x"),
    "_": Wildcard(),
    "nil": Nil(),
    "$": Counter(),
    "autoinc()": Counter(),
    "12": Number("12"),
    "12u": Number("12u"),
    "0x1F": Number("0x1F"),
    "0b101u": Number("0b101u"),
    "1.5": Number("1.5"),
    "127.0.0.1": Number("127.0.0.1"),
    '""': String(""),
    r'"a\"b\\\n\t"': String('a"b\\\n\t'),
    "[x, [y, nil]]": RecordTerm((X, RecordTerm((Y, Nil())))),
    "[]": RecordTerm(()),
    "$A()": BranchTerm("A", ()),
    "$A": BranchTerm("A", ()),
    "$C.A(x, $B())": BranchTerm("C.A", (X, BranchTerm("B", ()))),
    "as(x, C.T)": Cast(X, "C.T"),
    "@f(x, y)": Call("@f", (X, Y)),
    "cat(x, y)": Call("cat", (X, Y)),
    "f(x, g())": Call("f", (X, Call("g", ()))),
    "((f(x)))": Call("f", (X,)),
    "(f(x) + y)": Call("+", (Call("f", (X,)), Y)),
    "to_number(x)": Call("to_number", (X,)),
    "itof(x)": Call("itof", (X,)),
    "range(0, x)": Call("range", (Number("0"), X)),
    "min(x, y)": Call("min", (X, Y)),
    "min(f(x), y)": Call("min", (Call("f", (X,)), Y)),
    "max((f(x)), f(y) + x, y)": Call("max", (Call("f", (X,)), Call("+", (Call("f", (Y,)), X)), Y)),
    "-x": Call("-", (X,)),
    "-1": Call("-", (Number("1"),)),
    "count : { p() }": AggregateTerm("count", None, P),
    "count : p()": AggregateTerm("count", None, P),
    "sum x + y : { p() ; true }": AggregateTerm("sum", Call("+", (X, Y)), Or((P, Truth(True)))),
    "min x : { p() }": AggregateTerm("min", X, P),
    "max (x) : p()": AggregateTerm("max", X, P),
    "@@f x : 0, { p() }": AggregateTerm("@@f", X, P, Number("0")),
    "@@f : 0, p()": AggregateTerm("@@f", None, P, Number("0")),
}


@pytest.mark.parametrize(("text", "tree"), TERMS.items(), ids=TERMS.keys())
def test_term(text: str, tree: Term) -> None:
    assert term(text) == tree


BINDS = {
    "a + b * c": "(a + (b * c))",
    "a * b + c": "((a * b) + c)",
    "a - b - c": "((a - b) - c)",
    "a / b % c * d": "(((a / b) % c) * d)",
    "a ^ b ^ c": "(a ^ (b ^ c))",
    "- a ^ b": "(- (a ^ b))",
    "a ^ - b * c": "((a ^ (- b)) * c)",
    "a ^ - b ^ c": "(a ^ (- (b ^ c)))",
    "- a * b": "((- a) * b)",
    "- - a": "(- (- a))",
    "bnot a + b": "((bnot a) + b)",
    "lnot a land b": "((lnot a) land b)",
    "a lor b lxor c land d": "(a lor (b lxor (c land d)))",
    "a land b bor c bxor d band e": "(a land (b bor (c bxor (d band e))))",
    "a band b bshl c + d": "(a band (b bshl (c + d)))",
    "a bshl b bshr c bshru d": "(((a bshl b) bshr c) bshru d)",
    "a band b lor c": "((a band b) lor c)",
    "(a + b) * c": "((a + b) * c)",
    "a - (b - c)": "(a - (b - c))",
    "(a ^ b) ^ c": "((a ^ b) ^ c)",
    "a - -1": "(a - (- 1))",
}


@pytest.mark.parametrize(("text", "tree"), BINDS.items(), ids=BINDS.keys())
def test_operators_bind_as_in_souffle(text: str, tree: str) -> None:
    assert grouped(term(text)) == tree


Q, R = Atom("q", ()), Atom("r", ())
BODIES = {
    "p(), q(), r()": And((P, Q, R)),
    "p(), (q(), r())": And((P, And((Q, R)))),
    "p(), q(); r()": Or((And((P, Q)), R)),
    "p(), (q(); r())": And((P, Or((Q, R)))),
    "(p())": P,
    "!p()": Not(P),
    "!!p()": Not(Not(P)),
    "!(p(), q())": Not(And((P, Q))),
    "!p(), q()": And((Not(P), Q)),
    "!x = y": Not(Constraint("=", X, Y)),
    "x <= y": Constraint("<=", X, Y),
    "(x) != (y)": Constraint("!=", X, Y),
    "((x + y)) > 1": Constraint(">", Call("+", (X, Y)), Number("1")),
    "match(x, y)": Constraint("match", X, Y),
    "!contains(x, y)": Not(Constraint("contains", X, Y)),
    "true, false": And((Truth(True), Truth(False))),
    "c.d.e(x)": Atom("c.d.e", (X,)),
    "e@17(x)": Atom("e", (X,), round=17),
    "c.e @ -1 (x)": Atom("c.e", (X,), round=-1),
    "x = $A": Constraint("=", X, BranchTerm("A", ())),
}


@pytest.mark.parametrize(("text", "tree"), BODIES.items(), ids=BODIES.keys())
def test_body(text: str, tree: object) -> None:
    assert body(text) == tree


def test_clauses_need_no_white_space_between_them() -> None:
    assert len(items("a(1).b(x):-a(x).c(2).")) == 3


def test_a_name_may_be_split_from_its_component_by_a_dot_only_inside_a_clause() -> None:
    assert items(".input a\n.output b") == (Directive("input", ("a",)), Directive("output", ("b",)))


def test_comments_and_annotations_say_nothing() -> None:
    assert only("/* a */ p( // b\n). /** c **/ // d") == only("p().") == only('@[doc = "x [1]"] p().')


def test_a_comment_mark_in_a_string_is_text() -> None:
    assert term('"// a /* b"') == String("// a /* b")


@examples(50)
@given(st.from_regex(r"\A([A-Za-z?][A-Za-z0-9_?]*|_[A-Za-z0-9_?]+)\Z").filter(lambda n: n not in words.RESERVED))
def test_names_that_are_not_reserved_are_variables(name: str) -> None:
    assert term(name) == Variable(name)


def test_reserved_words_are_those_of_the_grammar() -> None:
    assert set(re.findall(r'"([a-z_A-Z]{2,})"', GRAMMAR.read_text())) == words.RESERVED


def test_directives_are_those_of_the_grammar() -> None:
    in_grammar = {f".{d}" for d in re.findall(r"/\\\.([a-z_]+)\(", GRAMMAR.read_text())}
    assert in_grammar | {".include", ".once"} == set(words.DIRECTIVES)


def test_file_and_line_are_the_place_in_the_users_file() -> None:
    source = Source("\np(__FILE__, __LINE__).", "here.dl")
    (clause,) = parse(source).items
    assert isinstance(clause, Clause)
    assert clause.heads[0].args == (String("here.dl"), Number("2"))


SPANNED = """\
.decl edge, arc(x: number, y: C.T) input  // comment
path(x, (y + 1) * 2) :- !edge(x, _), (x < 1; y = count : { arc(x, y) }) .
r(x) <= r(y) :- x < y.
.comp C : D { .init e = E<T> }
.input edge, arc(IO=file)
"""


def nodes(value: object) -> list[object]:
    """Every node of a tree."""
    if isinstance(value, tuple):
        return [n for v in value for n in nodes(v)]
    if not hasattr(value, "__dataclass_fields__") or isinstance(value, Span):
        return []
    fields = (getattr(value, name) for name in value.__dataclass_fields__)
    return [value, *(n for field in fields for n in nodes(field))]


def test_every_node_knows_its_text() -> None:
    program = parse(Source(SPANNED))
    said = [(type(n).__name__, SPANNED[n.span.start : n.span.end]) for n in nodes(program)]  # type: ignore[attr-defined]
    assert all(n.span != NOWHERE for n in nodes(program))  # type: ignore[attr-defined]
    for expected in [
        ("RelationDecl", ".decl edge, arc(x: number, y: C.T) input"),
        ("Attribute", "y: C.T"),
        ("Clause", SPANNED.splitlines()[1]),
        ("Atom", "path(x, (y + 1) * 2)"),
        ("Call", "(y + 1) * 2"),
        ("Call", "(y + 1)"),
        ("Not", "!edge(x, _)"),
        ("Wildcard", "_"),
        ("Or", "(x < 1; y = count : { arc(x, y) })"),
        ("AggregateTerm", "count : { arc(x, y) }"),
        ("Subsumption", "r(x) <= r(y) :- x < y."),
        ("ComponentDecl", ".comp C : D { .init e = E<T> }"),
        ("ComponentType", "E<T>"),
        ("Directive", ".input edge, arc(IO=file)"),
    ]:
        assert expected in said


def test_names_in_lists_have_their_own_spans() -> None:
    decl, *_, directive = parse(Source(SPANNED)).items
    assert isinstance(decl, RelationDecl)
    assert isinstance(directive, Directive)
    assert [SPANNED[s.start : s.end] for s in decl.name_spans] == ["edge", "arc"]
    assert [SPANNED[s.start : s.end] for s in directive.relation_spans] == ["edge", "arc"]
    assert SPANNED[decl.attributes[1].type_span.start : decl.attributes[1].type_span.end] == "C.T"


@pytest.mark.parametrize(
    "text",
    [
        "p(1), q(2).",
        "p :- q().",
        "p() :- .",
        "p().q",
        ".decl r",
        ".decl r(x)",
        ".input",
        "p(1 2).",
        "p() :- q() r().",
        "?- p().",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(DlogError):
        items(text)


def test_debug_delta_declares_a_relation_of_another_ones_rows() -> None:
    assert items(".decl d = debug_delta(r) output") == (RelationDecl(("d",), (), ("output",), debug_delta=DebugDelta("r")),)


def test_a_thousand_rules_parse_at_once() -> None:
    text = "\n".join(f'p{i}(x, "s") :- q{i}(x, z, _), r(z, {i}), x + 1 < z * 2, !s(x, [z, nil]).' for i in range(1000))
    parse(Source("p()."))
    started = time.process_time()
    assert len(items(text)) == 1000
    assert time.process_time() - started < 30


def test_tables_are_built_where_no_cache_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from dlog.grammar import parser

    monkeypatch.setenv("DLOG_CACHE", "/dev/null/nowhere")
    tables = parser.tables.__wrapped__()
    assert tables.parse_interactive() is not None


@pytest.mark.slow
def test_a_spoiled_cache_is_built_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    from dlog.grammar import parser

    monkeypatch.setenv("DLOG_CACHE", str(tmp_path))
    kept = parser._tables_file(GRAMMAR.read_text())
    assert kept is not None
    kept.write_bytes(b"not a table")
    assert parser.tables.__wrapped__().parse_interactive() is not None
