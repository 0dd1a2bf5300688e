"""Friendly messages for text that does not parse.

`MISTAKES` is a list of small functions: each knows one mistake people make and gives a diagnostic or None, the first that
knows wins. They look at the tokens of the broken item and at what the parser would have accepted, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeAlias

from lark import Token

from dlog.dataclass import dataclass
from dlog.grammar.diagnostics import Diagnostic, Label
from dlog.grammar.source import Source, Span
from dlog.grammar.suggest import closest
from dlog.grammar.words import DIRECTIVES, FUNCTORS, QUALIFIERS, RESERVED

PAIRS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = frozenset(PAIRS.values())
COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
CONDITIONS = "a condition is an atom `r(x)`, a negation `!r(x)` or a comparison `x < y`"
OPERATORS = frozenset({"+", "*", "/", "%", "band"})


@dataclass(frozen=True, slots=True)
class Failure:
    """The parser stops at `token`, number `at` of `tokens`, in the item that starts at number `start`; `expected` are the
    terminals it would take: their text, or their names where they are patterns (`IDENT`, `STRING`)."""

    source: Source
    tokens: list[Token]
    start: int
    at: int
    token: Token
    expected: frozenset[str]

    @property
    def previous(self) -> Token | None:
        return self.tokens[self.at - 1] if self.at > 0 else None

    @property
    def previous_end(self) -> int:
        return (self.previous.end_pos or 0) if self.previous is not None else 0

    @property
    def item(self) -> list[Token]:
        """The tokens of the item before the one at fault."""
        return self.tokens[self.start : self.at]

    @property
    def directive(self) -> str:
        """The item's directive (`.decl`) or nothing, for a clause."""
        first = self.tokens[self.start] if self.start < len(self.tokens) else self.token
        return str(first) if _is_directive(first) else ""

    def next(self, ahead: int = 1) -> Token | None:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else None

    def report(self, message: str, *labels: tuple[Span, str] | Span, notes: Iterable[str] = ()) -> Diagnostic:
        places = labels or (place(self.token),)
        return Diagnostic(
            "syntax",
            message,
            tuple(Label(at) if isinstance(at, Span) else Label(*at) for at in places),
            tuple(notes),
            self.source,
        )


Mistake: TypeAlias = Callable[[Failure], Diagnostic | None]


def _is_directive(token: Token) -> bool:
    return token in DIRECTIVES


def place(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def after(failure: Failure) -> Span:
    """Just behind the last good token, where something is missing."""
    return Span(failure.previous_end, failure.previous_end)


def explain(failure: Failure) -> Diagnostic:
    for mistake in MISTAKES:
        found = mistake(failure)
        if found is not None:
            return found
    return _unexpected(failure)


# --------------------------------------------------------------------------------------------------- not even a token

_STRAY = {
    "'": 'symbols are written in double quotes: "text"',
    "&": "conditions are joined by `,`; the bitwise operator is `band`",
    "~": "the bitwise complement is `bnot`",
    "\\": "negation is written `!`",
    "`": "names are written as they are, without quotes",
    "#": "a preprocessor directive begins its line",
}


_COMMENT_OR_STRING = re.compile(r'"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"?|//[^\n]*|/\*(?:.*?\*/|(?P<open>))', re.DOTALL)
"""What a comment may not begin in, or one, or the beginning of one that is open."""


def open_comment(source: Source) -> Diagnostic | None:
    """The diagnostic for a comment that has no end."""
    found = next((f for f in _COMMENT_OR_STRING.finditer(source.text) if f["open"] is not None), None)
    if found is None:
        return None
    return Diagnostic("syntax", "this comment has no end", (Label(Span(*found.span())),), ("add the closing `*/`",), source)


def stray_text(source: Source, text: str, at: int) -> tuple[Diagnostic, int]:
    """The diagnostic for text at `at` that begins no token, and where to go on."""
    found = text.find("\n", at)
    line_end = found if found >= 0 else len(text)
    if text[at] == '"':
        end = _guess_end_of_string(text, at, line_end)
        return Diagnostic("syntax", "this string has no end", (Label(Span(at, end)),), ('add the closing `"`',), source), end
    quoted = re.compile(r"'[^'\n]*'").match(text, at, line_end)
    if quoted:
        span = Span(at, quoted.end())
        return Diagnostic("syntax", f"unexpected {quoted[0]}", (Label(span),), (_STRAY["'"],), source), span.end
    notes = (_STRAY[text[at]],) if text[at] in _STRAY else ()
    message = f"unexpected character `{text[at]}`"
    return Diagnostic("syntax", message, (Label(Span(at, at + 1)),), notes, source), at + 1


def _guess_end_of_string(text: str, at: int, line_end: int) -> int:
    """The end of the line, but without a `)`, `.` or the like at its end, which hardly were meant to be in the string."""
    before = text[at:line_end].partition("//")[0].rstrip().rstrip(")],.").rstrip()
    return at + max(1, len(before))


def strange_directive(source: Source, dot: Token, word: Token) -> Diagnostic:
    """`.ouput path`, `.decl(x: number)`: a `.` and a word at the beginning of a line that is no directive as it stands."""
    name = f".{word}"
    span = Span(place(dot).start, place(word).end)
    if name in DIRECTIVES:
        message, notes = f"`{name}` is not followed by white space", (f"write `{name} ...`",)
    else:
        guess = closest(name, DIRECTIVES)
        message = f"unknown directive `{name}`"
        notes = (f"did you mean `{guess}`?" if guess else "directives are " + " ".join(DIRECTIVES),)
    return Diagnostic("syntax", message, (Label(span),), notes, source)


# ----------------------------------------------------------------------------------------------------- the common cases


_WITH_ARGUMENT = {
    "history": "write `history(10)`: so many of its rounds can be read later",
    "retract": "write `retract(now)` or `retract(original)`: what its events take back when they go",
}
"""Qualifiers with something in brackets, which else begin as atoms do."""


def strange_qualifier(f: Failure) -> Diagnostic | None:
    """A name alone behind a declaration, on its line; or one that has to have something else in brackets."""
    if not f.item or f.item[0].type != "IDENT" or not f.start or f.token in ("(", ".", ":-"):
        return None
    name, opened = f.item[0], f.start - 1
    if len(f.item) > 1 and (name not in _WITH_ARGUMENT or [t for t in f.item if t == ")"] != f.item[-1:]):
        return None
    while opened and (f.tokens[opened] in QUALIFIERS or f.tokens[opened].type in ("HISTORY", "RETRACT")):
        opened -= 1
    if f.tokens[opened] == ")":
        while opened and f.tokens[opened] != "(":
            opened -= 1
    before = [token for token in f.tokens[max(0, opened - 2) : opened] if token == ".decl"]
    if not before or "\n" in f.source.text[f.tokens[f.start - 1].end_pos or 0 : name.start_pos]:
        return None
    close = closest(name, QUALIFIERS)
    known = (*sorted(QUALIFIERS), "history(10)", "retract(original)")
    note = f"did you mean `{close}`?" if close else f"qualifiers are {', '.join(known)}"
    if name in ("bag", "multiset"):
        note = "a relation has a row once or not: how often it is there is a column, which `sum` adds up"
    span = Span(place(name).start, place(f.item[-1]).end)
    written = f.source.text[span.start : span.end]
    return f.report(f"`{written}` is no qualifier of a relation", span, notes=[_WITH_ARGUMENT.get(name, note)])


def missing_dot(f: Failure) -> Diagnostic | None:
    """A clause that could end here, followed by what must be the next item."""
    if "." not in f.expected or f.directive or f.previous is None:
        return None
    starts_anew = f.token.type == "$END" or _is_directive(f.token) or f.token == "}"
    if not starts_anew and not (f.token.type == "IDENT" and _starts_line_at_or_before(f, f.tokens[f.start])):
        return None
    kind = "rule" if any(t == ":-" for t in f.item) else "clause"
    return f.report(f"missing `.` at the end of this {kind}", after(f))


def _starts_line_at_or_before(f: Failure, first: Token) -> bool:
    """Whether the token at fault opens a line and is not indented deeper than the item's first token."""
    text = f.source.text
    line = text.rfind("\n", 0, f.token.start_pos) + 1
    column = (f.token.start_pos or 0) - line
    first_column = (first.start_pos or 0) - (text.rfind("\n", 0, first.start_pos) + 1)
    return line > (first.start_pos or 0) and not text[line : f.token.start_pos].strip() and column <= first_column


def misplaced_directive(f: Failure) -> Diagnostic | None:
    reason = {
        "PLAN": "`.plan` must follow the rule it is about",
        "OVERRIDE": "`.override` is allowed inside a component only",
        "FUNCTOR": "`.functor` is not allowed inside a component",
        "PRAGMA": "`.pragma` is not allowed inside a component",
    }.get(f.token.type)
    return f.report(reason) if reason and "DECL" in f.expected else None


def dot_after_directive(f: Failure) -> Diagnostic | None:
    if f.token != "." or "DECL" not in f.expected:
        return None
    for earlier in reversed(f.tokens[: f.at]):
        if _is_directive(earlier):
            return f.report(f"`{earlier}` takes no final `.`", notes=["only facts and rules end in `.`"])
        if earlier == ".":
            return None
    return None


def attribute_without_type(f: Failure) -> Diagnostic | None:
    in_attributes = f.directive in (".decl", ".type") and any(t in PAIRS for t in f.item)
    if in_attributes and f.previous is not None and f.previous.type == "IDENT" and ":" in f.expected:
        return f.report(f"attribute `{f.previous}` has no type", place(f.previous), notes=[f"write `{f.previous}: number`"])
    if in_attributes and f.previous == ":" and "IDENT" in f.expected and f.token.type != "IDENT":
        return f.report("a type name is missing after `:`", after(f))
    return None


def declaration_without_attributes(f: Failure) -> Diagnostic | None:
    if f.directive == ".decl" and f.expected == {"(", ",", "="} | (f.expected & {"="}) and f.previous is not None:
        note = f"write `.decl {f.previous}(x: number)`, or `.decl {f.previous}()` for no attributes"
        return f.report(f"the declaration of `{f.previous}` has no attribute list", after(f), notes=[note])
    return None


def reserved_word(f: Failure) -> Diagnostic | None:
    if "IDENT" in f.expected and f.token in RESERVED and f.token.type != "IDENT" and f.token not in f.expected:
        return f.report(f"`{f.token}` is a reserved word and cannot be a name here")
    if f.previous is not None and f.previous in FUNCTORS and f.expected == {"("}:
        return f.report(f"the function `{f.previous}` needs arguments", after(f), notes=["its name is a reserved word"])
    return None


def fact_with_two_heads(f: Failure) -> Diagnostic | None:
    """`p(1), q(2).`"""
    if f.token == "." and f.expected == {",", ":-"}:
        return f.report("several heads need a body", after(f), notes=["each fact is written with its own `.`"])
    return None


def second_arrow(f: Failure) -> Diagnostic | None:
    if f.token != ":-":
        return None
    for earlier in f.item:
        if earlier == ":-":
            note = "is the `.` of the rule before missing?"
            return f.report("a rule has only one `:-`", (place(f.token), ""), (place(earlier), "the first one"), notes=[note])
    if f.at == f.start:
        return f.report("a rule begins with its head: `head(x) :- body(x).`")
    if f.previous is not None and f.previous.type == "IDENT":
        return f.report(f"the head `{f.previous}` needs an argument list", after(f), notes=[f"write `{f.previous}() :- ...`"])
    return None


def dot_before_newline(f: Failure) -> Diagnostic | None:
    """`p(x) :- q(x), y.` and a rule on the next line, which reads as the atom `y.p(x)`."""
    for name, dot, following in zip(f.item, f.item[1:], f.item[2:], strict=False):
        gap = f.source.text[place(dot).end : place(following).start]
        if name.type == "IDENT" and dot == "." and following.type == "IDENT" and "\n" in gap and f.token == ":-":
            return f.report(f"`{name}` alone is not a condition", place(name), notes=[CONDITIONS])
    return None


def empty_body(f: Failure) -> Diagnostic | None:
    if f.previous == ":-" and f.token == ".":
        return f.report("this rule has no body", place(f.previous), notes=["a fact is written without `:-`: `head(1).`"])
    return None


def wrong_arrow(f: Failure) -> Diagnostic | None:
    """`<-`, `->`, `=`, `:` or the like between head and body."""
    if ":-" not in f.expected or f.directive or f.token not in ("<", "-", "->", ":", "=", "<:", ">"):
        return None
    following = f.next()
    end = following if following in ("-", "=", ">") and following.start_pos == f.token.end_pos else f.token
    assert end is not None
    span = Span(place(f.token).start, place(end).end)
    return f.report(f"unexpected `{f.source.text[span.start : span.end]}`", span, notes=["head and body are joined by `:-`"])


def dangling_comma(f: Failure) -> Diagnostic | None:
    stops = f.token in CLOSERS or f.token in (".", ":-") or f.token.type == "$END" or _is_directive(f.token)
    if f.previous is not None and f.previous in (",", ";") and stops:
        return f.report(f"nothing follows this `{f.previous}`", place(f.previous))
    return None


def bracket(f: Failure) -> Diagnostic | None:
    """A bracket that is not closed, or one that was never opened."""
    opened: list[Token] = []
    for token in f.item:
        if token in PAIRS:
            opened.append(token)
        elif token in CLOSERS and opened:
            opened.pop()
    if f.token in CLOSERS and (not opened or (PAIRS[opened[-1]] != f.token and PAIRS[opened[-1]] not in f.expected)):
        return _wrong_closer(f, opened)
    if opened and PAIRS[opened[-1]] in f.expected and _ends_something(f):
        closer = PAIRS[opened[-1]]
        return f.report(f"missing `{closer}`", after(f), (place(opened[-1]), "opened here"))
    return None


def _wrong_closer(f: Failure, opened: list[Token]) -> Diagnostic | None:
    if not opened:
        return f.report(f"`{f.token}` closes nothing")
    want = PAIRS[opened[-1]]
    return f.report(f"`{f.token}` where `{want}` is expected", place(f.token), (place(opened[-1]), "opened here"))


def _ends_something(f: Failure) -> bool:
    at_end = f.token.type == "$END" or f.token in CLOSERS or f.token in (".", ":-", ";")
    return at_end or _is_directive(f.token) or _opens_line(f)


def _opens_line(f: Failure) -> bool:
    line = f.source.text.rfind("\n", 0, f.token.start_pos) + 1
    return not f.source.text[line : f.token.start_pos].strip()


def open_component(f: Failure) -> Diagnostic | None:
    if f.token.type != "$END" or "}" not in f.expected or "DECL" not in f.expected:
        return None
    depth = 0
    for i in range(f.at - 1, -1, -1):
        depth += (f.tokens[i] == "}") - (f.tokens[i] == "{")
        if depth < 0:
            return f.report("missing `}` of this component", after(f), (place(f.tokens[i]), "opened here"))
    return None


def word_for_operator(f: Failure) -> Diagnostic | None:
    """Operators of other languages: `not p(x)`, `x == y`, `x <> y`, `% comment`, `a and b`."""
    if f.previous == "not" and f.token.type == "IDENT":
        return f.report("negation is written `!`", place(f.previous))
    if f.token in ("and", "or") and f.token.type == "IDENT":
        return f.report(f"unexpected `{f.token}`", notes=[f"write `{',' if f.token == 'and' else ';'}` instead"])
    glued = f.previous is not None and f.previous.end_pos == f.token.start_pos
    if glued and f.previous is not None and f.previous in COMPARISONS and f.token in COMPARISONS:
        wrong = f"{f.previous}{f.token}"
        right = {"==": "=", "<>": "!=", "=<": "<=", "=>": ">=", "!==": "!="}.get(wrong)
        notes = [f"write `{right}`"] if right else []
        return f.report(f"unknown comparison `{wrong}`", Span(place(f.previous).start, place(f.token).end), notes=notes)
    if f.token == "%" and "DECL" in f.expected:
        return f.report("unexpected `%`", notes=["a comment begins with `//`"])
    return None


def number_with_rest(f: Failure) -> Diagnostic | None:
    """`1_`, `2e`, `0x_f`: letters follow a number at once."""
    before = f.previous
    if before is None or before.type not in ("NUMBER", "UNSIGNED", "FLOAT") or before.end_pos != f.token.start_pos:
        return None
    if f.token.type != "IDENT" and f.token != "_":
        return None
    notes = ["numbers are written `1_000`, `0x1f`, `0b101`, `12u`, `1.5`, `1e3`; `_` stands between digits"]
    return f.report(f"`{before}{f.token}` is not a number", Span(place(before).start, place(f.token).end), notes=notes)


def missing_comma(f: Failure) -> Diagnostic | None:
    starts = f.token.type in ("IDENT", "NUMBER", "STRING", "UNSIGNED", "FLOAT") or f.token in ("!", "_", "[", "match", "nil")
    if "," in f.expected and starts and f.previous is not None:
        return f.report("missing `,`", after(f), notes=[f"before `{_abbreviated(f.token)}`"])
    return None


def term_for_literal(f: Failure) -> Diagnostic | None:
    """`p(x) :- q(x), y.`: a term stands where a condition must."""
    ends = f.token in (",", ".", ";", ")", "}") or f.token.type == "$END"
    if f.expected >= COMPARISONS and ends and f.previous is not None:
        return f.report("a value alone is not a condition", place(f.previous), notes=[CONDITIONS])
    return None


def unfinished_clause(f: Failure) -> Diagnostic | None:
    """`p(x) q(x).`, `edge.`"""
    if f.previous is not None and f.previous.type == "IDENT" and f.at == f.start + 1 and f.expected <= {"(", "."}:
        note = f"an atom is written `{f.previous}(x)`, or `{f.previous}()` without arguments"
        return f.report(f"`{f.previous}` needs an argument list", after(f), notes=[note])
    return None


MISTAKES: tuple[Mistake, ...] = (
    open_component,
    misplaced_directive,
    dot_after_directive,
    attribute_without_type,
    declaration_without_attributes,
    dot_before_newline,
    second_arrow,
    empty_body,
    dangling_comma,
    word_for_operator,
    wrong_arrow,
    reserved_word,
    fact_with_two_heads,
    bracket,
    term_for_literal,
    unfinished_clause,
    number_with_rest,
    missing_comma,
)
"""In this order: a later one may look like an earlier one."""

# ------------------------------------------------------------------------------------------------------- anything else

_NAMES = {
    "IDENT": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "DECL": "a declaration",
    "$END": "the end of the text",
}
_TERM = frozenset({"NUMBER", "STRING", "FLOAT", "nil", "["})
_LITERAL = _TERM | {"!", "true"}
_ITEM = frozenset({"DECL", "TYPE", "INPUT"})


def _unexpected(f: Failure) -> Diagnostic:
    expected = _expectation(f.expected)
    notes = [f"expected {expected}"] if expected else []
    if f.token.type == "$END":
        return f.report("unexpected end of the text", after(f), notes=notes)
    return f.report(f"unexpected `{_abbreviated(f.token)}`", notes=notes)


def _abbreviated(token: Token) -> str:
    return str(token) if len(token) <= 40 else f"{token[:37]}..."


def _expectation(expected: frozenset[str]) -> str:
    """The expected tokens, in a few words, or nothing where that would be a long list."""
    words: list[str] = []
    if expected >= _ITEM:
        return "a fact, a rule or a directive"
    if expected >= _LITERAL:
        return "an atom, a negation or a comparison"
    if expected >= _TERM:
        return "a value" + (" or `)`" if ")" in expected else "")
    if expected >= COMPARISONS:
        return "a comparison such as `=` or `<`" if "," not in expected else "a comparison, `,` or the end of the clause"
    if expected >= OPERATORS:
        words.append("an operator")
        expected = frozenset(e for e in expected if not re.fullmatch(r"[-+*/%^]|b?[a-z]{2,5}", e))
    words += sorted(_NAMES.get(e, e.lower() if e.isupper() else f"`{e}`") for e in expected)
    if len(words) > 6:
        return ""
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
