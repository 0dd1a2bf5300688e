"""Which names stand where in a text, finished or not."""

from lsprotocol.types import Position, PositionEncodingKind
from pygls.workspace import PositionCodec

from dlog.lsp.hover import comment_above, word_hover
from dlog.lsp.names import Role, at_offset, declaration, find_names
from dlog.lsp.places import Places, word_at, word_start

PROGRAM = """\
.type City <: symbol
.type Shape = Circle { r: number } | Point {}
.decl edge(x: number, y: City) input
.functor near(number, City): number
path(x, y) :- edge(x, y), !edge(y, as(x, City)), n = count : { edge(_, z) }, @near(x, y) = strlen("a"), s = $Circle(x).
path(x, z) :- path(x, y), edge(y, z).
.output path(filename="edge")
"""


def named(text: str, name: str, role: Role) -> list[str]:
    return [text[o.span.start : o.span.end] for o in find_names(text) if o.name == name and o.role is role]


def test_names_have_roles_and_places() -> None:
    assert named(PROGRAM, "edge", Role.RELATION) == ["edge"] * 5
    assert named(PROGRAM, "City", Role.TYPE) == ["City"] * 4
    assert named(PROGRAM, "Circle", Role.BRANCH) == ["Circle"] * 2
    assert named(PROGRAM, "near", Role.FUNCTOR) == ["near"] * 2
    assert named(PROGRAM, "strlen", Role.RELATION) == []
    assert all(PROGRAM[o.span.start : o.span.end] == o.name for o in find_names(PROGRAM))


def test_an_event_is_of_its_relation() -> None:
    text = ".decl edge(x: number) retract(original)\n.decl new(x: number)\n"
    text += "new(x) :- @edge(x), x < now(), @near(x) = 1, @c.edge(x).\n"
    assert named(text, "edge", Role.RELATION) == ["edge"] * 2
    assert named(text, "c.edge", Role.RELATION) == ["c.edge"]
    assert (named(text, "near", Role.FUNCTOR), named(text, "now", Role.RELATION)) == (["near"], [])
    assert [o.name for o in find_names(text) if o.role is Role.RELATION and o.declares] == ["edge", "new"]
    assert "The round" in word_hover("now")


def test_variables_are_of_their_clause() -> None:
    names = find_names(PROGRAM)
    second = at_offset(names, PROGRAM.index("path(x, z)") + 5)
    assert second is not None and second.name == "x"
    assert len([o for o in names if o.same_name(second)]) == 2


def test_components_around_each_other_without_end() -> None:
    """Each has its text read again, and more than Python's stack holds."""
    names = find_names(2000 * ".comp A { ")
    assert [o.role for o in names] == [Role.COMPONENT] * len(names) and len(names) > 10


def test_positions_count_as_the_editor_does() -> None:
    """In units of UTF-16, and none is behind the end of its line."""
    text = "a\U0001f642b\r\nplain\n"
    places = Places(text, PositionCodec(PositionEncodingKind.Utf16))
    for offset, (line, character) in {0: (0, 0), 2: (0, 3), 3: (0, 4), 5: (1, 0), 10: (1, 5)}.items():
        assert places.position(offset) == Position(line, character)
        assert places.offset(Position(line, character)) == offset
    assert [places.offset(Position(line, 99)) for line in (1, 2, 3)] == [10, 11, 11]


def test_a_word_is_around_a_place() -> None:
    text = "a " + 100_000 * "b" + " c.d"
    assert (word_start(text, 50_000), word_start(text, 2), word_at(text, len(text))) == (2, 2, "c.d")
    assert word_at(text, 7) == 100_000 * "b"


def test_comments_lose_their_marks_in_time() -> None:
    blanks = 100_000 * " "
    text = f"/** One{blanks}x. **/\n* two\n// three */\n/* four"
    assert comment_above(f"{text}\n", len(text) + 1) == f"One{blanks}x.\ntwo\nthree\nfour"


def test_an_unfinished_text_has_names() -> None:
    names = find_names(".decl edge(x: number)\np(x) :- edge(x")
    assert [(o.name, o.role) for o in names if o.role is Role.RELATION] == [
        ("edge", Role.RELATION),
        ("p", Role.RELATION),
        ("edge", Role.RELATION),
    ]


def test_a_name_in_a_component_is_that_of_the_innermost_declaration() -> None:
    component = ".comp C<T> { .decl r(x: T)\n r(x) :- q(x). }\n.init c = C<number>\n"
    text = f".decl r(x: number)\n{component}.decl q(x: number)\nq(x) :- c.r(x), r(x)."
    names = find_names(text)
    inner = at_offset(names, text.index("r(x) :- q"))
    assert inner is not None and inner.scope == "C"
    outer = at_offset(names, len(text) - 4)
    assert outer is not None and (outer.name, outer.scope) == ("r", "")
    qualified = at_offset(names, text.index("c.r(x)") + 1)
    assert qualified is not None
    declared = declaration(names, qualified)
    assert declared is not None and declared.scope == "C"


def test_a_relation_may_have_the_name_of_a_functor_that_only_dlog_has() -> None:
    text = ".decl abs(x: number)\np(x) :- abs(x), x = sqrt(2.0)."
    assert [o.name for o in find_names(text) if o.role is Role.RELATION] == ["abs", "p", "abs"]
