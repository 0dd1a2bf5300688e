"""Lark's tables as JSON: numbers and texts, in which nothing can be run. (Lark itself would keep them as a pickle.)"""

from __future__ import annotations

import json
from typing import Any

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

RUNNING = ("transformer", "lexer_callbacks", "postlex", "edit_terminals", "tree_class", "import_paths", "_plugins")
"""Options that are code, or name files: they come from this version of dlog, never from a file."""


def tables_as_text(tables: lark.Lark) -> bytes:
    data, memo = tables.memo_serialize([TerminalDef, Rule])
    data["options"] = {name: value for name, value in data["options"].items() if name not in RUNNING}
    return json.dumps([data, memo], separators=(",", ":")).encode()


def read_tables(content: bytes, actions: Any) -> lark.Lark:
    """The tables, with the actions. Raises whatever Lark does where the text is none of these."""
    data, memo = json.loads(content)
    if set(data["options"]) & set(RUNNING):
        raise ValueError("tables that say what is to be run")
    parser = data["parser"]["parser"]
    parser["tokens"] = _by_number(parser["tokens"])
    parser["states"] = {state: _by_number(actions) for state, actions in _by_number(parser["states"]).items()}
    loader: Any = lark.Lark
    found: lark.Lark = loader._load_from_dict(data, _by_number(memo), transformer=actions)
    return found


def _by_number(read: dict[str, Any]) -> dict[int, Any]:
    """JSON has texts for keys."""
    return {int(key): value for key, value in read.items()}
