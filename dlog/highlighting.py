"""How programs are coloured: a lexer for Pygments, which documents and terminals know as `dlog`, and which the prompt uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pygments.lexer import Lexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

from dlog.grammar.words import AGGREGATES, DIRECTIVES, FUNCTORS, RESERVED, WORD_OPERATORS
from dlog.repl.statements import Token, tokens

_TYPES: Final = frozenset({"number", "unsigned", "float", "symbol"})
_PUNCTUATION: Final = frozenset("().,;[]{}:") | {":-"}
_KINDS: Final = {"space": Text, "comment": Comment, "string": String, "number": Number, "query": Operator}


class DatalogLexer(Lexer):  # type: ignore[misc]
    """Programs in the Souffle dialect."""

    name = "dlog"
    aliases = ["dlog", "souffle"]  # noqa: RUF012 (as Pygments has it)
    filenames = ["*.dl"]  # noqa: RUF012

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """The offset, the kind and the text of each token."""
        listed = list(tokens(text))
        for number, token in enumerate(listed):
            following = listed[number + 1].text if number + 1 < len(listed) else ""
            yield token.start, self.kind(token, following, number), token.text

    def kind(self, token: Token, following: str, number: int) -> Any:
        """The kind of a token, by what follows it and how many stand before it."""
        if token.kind == "directive":
            return Keyword.Declaration if token.text in DIRECTIVES else Name.Builtin.Pseudo
        if token.kind == "name":
            return _kind_of_name(token.text, following)
        if token.kind in _KINDS:
            return _KINDS[token.kind]
        return Punctuation if token.text in _PUNCTUATION else Operator


def _kind_of_name(name: str, following: str) -> Any:
    if name in _TYPES:
        return Keyword.Type
    if name in WORD_OPERATORS:
        return Operator.Word
    if name in AGGREGATES or name in FUNCTORS:
        return Name.Builtin
    if name in RESERVED:
        return Keyword
    return Name.Function if following.startswith("(") else Name.Variable
