"""`python -m tests.textmate` prints the TextMate grammar, by which editors colour programs, from the words of the grammar.

`tests/test_textmate.py` fails where the file differs from what this prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dlog.grammar.words import AGGREGATES, DIRECTIVES, FUNCTORS, QUALIFIERS, RESERVED, WORD_OPERATORS

TARGET = Path(__file__).parents[1] / "editors" / "vscode" / "syntaxes" / "souffle.tmLanguage.json"
_NAME = r"[?A-Za-z_][?A-Za-z0-9_]*"
_NUMBER = r"0x[0-9a-fA-F]+(_[0-9a-fA-F]+)*u?|0b[01]+(_[01]+)*u?|\d+(_\d+)*(\.\d+(_\d+)*)?([eE][+-]?\d+)?u?"


def words(names: Iterable[str], after: str = "") -> str:
    """A pattern of any of the names."""
    return rf"(?<![\w?])({'|'.join(sorted(names))})(?![\w?]){after}"


def grammar() -> dict[str, Any]:
    """The whole file."""
    rest = RESERVED - QUALIFIERS - AGGREGATES - FUNCTORS - WORD_OPERATORS
    directives = "|".join(sorted(word[1:] for word in DIRECTIVES))
    patterns = [
        {"name": "comment.line.double-slash.souffle", "match": "//.*$"},
        {"name": "comment.block.souffle", "begin": r"/\*", "end": r"\*/"},
        {"name": "meta.preprocessor.souffle", "match": r"^\s*#\s*\w+.*$"},
        {
            "name": "string.quoted.double.souffle",
            "begin": '"',
            "end": '"|$',
            "patterns": [{"name": "constant.character.escape.souffle", "match": r"\\."}],
        },
        {"name": "keyword.control.souffle", "match": rf"(?<![\w?)])\.({directives})\b"},
        {"name": "constant.numeric.souffle", "match": rf"\b({_NUMBER})\b"},
        {"name": "support.type.souffle", "match": words(("number", "unsigned", "float", "symbol"))},
        {"name": "storage.modifier.souffle", "match": words(QUALIFIERS, r"(?!\s*\()")},
        {"name": "support.function.souffle", "match": words(AGGREGATES | FUNCTORS)},
        {"name": "keyword.operator.word.souffle", "match": words(WORD_OPERATORS)},
        {"name": "constant.language.souffle", "match": words(rest)},
        {"name": "entity.name.tag.souffle", "match": rf"\${_NAME}"},
        {"name": "entity.name.function.souffle", "match": rf"@*{_NAME}(\.{_NAME})*(?=\s*\()"},
        {"name": "variable.other.souffle", "match": _NAME},
        {"name": "keyword.operator.souffle", "match": r":-|<=|>=|!=|<:|[-+*/%^=<>!|]"},
    ]
    return {"name": "Soufflé Datalog", "scopeName": "source.souffle", "fileTypes": ["dl"], "patterns": patterns}


def text() -> str:
    return json.dumps(grammar(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
    print(f"wrote {TARGET.name}")
