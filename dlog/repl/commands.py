"""The commands of the REPL: one function each, and the table of them. What they do is told in the manual."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.grammar.suggest import closest
from dlog.repl.manual import PAGES, SYNTAX, page_of

if TYPE_CHECKING:
    from dlog.proofs.drawing import ProofLine
    from dlog.repl.shell import Shell

DEPTH: Final = 6
"""So many levels of a proof are shown."""


def obey(shell: Shell) -> None:
    """Executes the statement, a command line."""
    name, _, rest = shell.statement.text.strip().partition(" ")
    name = name.rstrip(".") if not name.startswith(".") else name
    name = {"help": ".help", "quit": ".quit", "exit": ".quit", ".exit": ".quit", ".q": ".quit"}.get(name, name)
    name = name[1:] if name in (".begin", ".commit", ".rollback") else name
    if name not in COMMANDS:
        raise _unknown(name)
    COMMANDS[name](shell, rest.strip())


def _placed(shell: Shell, part: str) -> str:
    """A part of the command line behind as much that is blank as there is before it, so that errors show its place."""
    before = shell.statement.placed.rpartition(part)[0]
    return re.sub(r"[^\n]", " ", before) + part


def _mistake(code: str, message: str, *notes: str) -> DlogError:
    return DlogError(Diagnostic(code, message, notes=notes))


def _unknown(name: str) -> DlogError:
    close = closest(name, PAGES)
    notes = [f"did you mean `{close}`?"] if close else []
    return _mistake("unknown-command", f"unknown command `{name}`", *notes, "`.help` lists the commands")


def _usage(command: str) -> DlogError:
    return _mistake("bad-usage", f"usage: {PAGES[command].usage}", f"`.help {command[1:]}` says more")


# ---------------------------------------------------------------------------------------------------------------------- rows


def load(shell: Shell, arguments: str) -> None:
    relation, path, parameters = _file_arguments(".load", arguments)
    shell.session.load(relation, path, **parameters)
    shell.settle()


def save(shell: Shell, arguments: str) -> None:
    from dlog.engine.formats import save as write
    from dlog.engine.ir.rules import Io
    from dlog.pipeline import available_cores, stage

    name, path, parameters = _file_arguments(".save", arguments)
    session = shell.session
    rows = session[name].rows
    program, codec = session.program, session.codec
    relation = program.relations[name]
    declared = next((io for io in program.io if io.action == "output" and io.relation == name), None)
    kept = {} if declared is None else {k: v for k, v in declared.params if k not in ("IO", "filename", "name")}
    io = Io("output", name, tuple((kept | parameters | {"filename": path.name}).items()), relation.span)
    with session.at(session.round) as view, stage(f"writing {name}"):
        records: Any = codec.records
        write(io, relation, program, view.table(name), codec.symbols, records, path.absolute().parent, available_cores())
    shell.screen.line(("note", f"{rows:,} {'row' if rows == 1 else 'rows'} of {name} in {path}"))


def _file_arguments(command: str, arguments: str) -> tuple[str, Path, dict[str, str]]:
    """The relation, the file and its parameters: `edge "my edges.csv" delimiter="," headers=true`."""
    found = re.fullmatch(r'(\S+)\s+("(?:[^"]*)"|\S+)((?:\s+\w+=(?:"[^"]*"|\S+))*)', arguments)
    if found is None:
        raise _usage(command)
    parameters = {key: value.strip('"') for key, value in re.findall(r'(\w+)=("[^"]*"|\S+)', found[3])}
    return found[1], Path(found[2].strip('"')).expanduser(), parameters


def begin(shell: Shell, arguments: str) -> None:
    if shell.staging:
        raise _mistake("nested-transaction", "a transaction is open already", "end it with `commit` or `rollback`")
    shell.staging = True
    shell.screen.line(("note", "changes are staged until `commit` or `rollback`"))


def commit(shell: Shell, arguments: str) -> None:
    if not shell.staging:
        raise _mistake("no-transaction", "there is nothing to commit", "`begin` opens a transaction")
    shell.commit()


def rollback(shell: Shell, arguments: str) -> None:
    if not shell.staging:
        raise _mistake("no-transaction", "there is nothing to roll back", "`begin` opens a transaction")
    shell.session.rollback()
    shell.staging = False
    shell.screen.line(("note", f"back at round {shell.session.round}"))


# -------------------------------------------------------------------------------------------------------------------- proofs


def why(shell: Shell, arguments: str) -> None:
    atom, depth = _with_depth(arguments)
    [(relation, row)] = _rows(shell, ".why", atom)
    from dlog.proofs.drawing import MORE, proof_lines

    cut = False
    for line in proof_lines(shell.session.why(relation, row), depth):
        cut = cut or line.parts[-1] == ("note", f"  {MORE}")
        _show(shell, line)
    if cut:
        further = f".why {atom.rstrip('. ')} {2 * (depth or 1)}"
        shell.screen.line(("note", f"more: `{further}`, or `.why` one of the rows above that end in {MORE}"))


def why_not(shell: Shell, arguments: str) -> None:
    [(relation, row)] = _rows(shell, ".whynot", arguments)
    from dlog.proofs.why_not import explanation_lines

    for line in explanation_lines(shell.session.why_not(relation, row)):
        _show(shell, line)


def _with_depth(arguments: str) -> tuple[str, int | None]:
    """An atom and the number of levels behind it."""
    found = re.fullmatch(r"(.*[).])\s*(\d+|all)", arguments, re.DOTALL)
    if found is None:
        return arguments, DEPTH
    return found[1].strip(), None if found[2] == "all" else int(found[2])


def _rows(shell: Shell, command: str, atom: str) -> list[tuple[str, Any]]:
    """The one row that an atom says."""
    if not atom:
        raise _usage(command)
    dot = "" if atom.endswith(".") else "."
    facts, line = _placed(shell, atom), shell.statement.placed
    rows = shell.session.written(facts + dot, line[: len(facts)] + dot)
    if len(rows) != 1:
        raise _usage(command)
    return rows


def _show(shell: Shell, line: ProofLine) -> None:
    shell.screen.line(*line.parts)


# ------------------------------------------------------------------------------------------------------------------- program


def plan(shell: Shell, arguments: str) -> None:
    asked = _placed(shell, arguments) if arguments.startswith("?-") else None
    text = shell.session.explain(asked).rstrip("\n")
    if arguments and asked is None:
        _check_relation(shell, arguments)
        blocks = [block for block in _blocks(text) if re.search(rf"\b{re.escape(arguments)}\b", block.partition("\n")[0])]
        text = "\n".join(blocks) or f"`{arguments}` has no rules: its rows come from outside"
    shell.screen.lines(text or "there are no rules")


def _blocks(text: str) -> Iterator[str]:
    """The parts of a plan: each begins with a line that is not indented."""
    block: list[str] = []
    for line in text.split("\n"):
        if line[:1].strip() and block:
            yield "\n".join(block).rstrip()
            block = []
        block.append(line)
    yield "\n".join(block).rstrip()


def schema(shell: Shell, arguments: str) -> None:
    if arguments:
        _check_relation(shell, arguments)
        pattern = re.compile(rf"(?<![\w.]){re.escape(arguments)}(?![\w.])")
    for line in _items(shell.session.text):
        head = line.partition(":-")[0]
        if not arguments or ((line[0] == "." or ":-" in line) and pattern.search(head)):
            shell.screen.lines(line)


def _items(text: str) -> Iterator[str]:
    """The declarations and rules of a program in canonical layout; further lines of one are indented."""
    item: list[str] = []
    for line in text.split("\n"):
        if line[:1].strip() and item:
            yield "\n".join(item)
            item = []
        if line.strip():
            item.append(line)
    if item:
        yield "\n".join(item)


def relations(shell: Shell, arguments: str) -> None:
    session = shell.session
    derived = session.program.derived.keys()
    uses: dict[str, list[str]] = {}
    for io in session.program.io:
        uses.setdefault(io.relation, []).append(io.action)
    rows = []
    for name in session:
        relation = session.program.relations[name]
        attributes = ", ".join(f"{attribute}: {type.name}" for attribute, type in relation.attributes)
        kind = " ".join(dict.fromkeys([*(["derived"] if name in derived else []), *uses.get(name, [])]))
        rows.append((f"{name}({attributes})", f"{session.rows(name):,}", kind))
    if rows:
        shell.screen.table(("relation", "rows", ""), rows, (False, True, False))
    else:
        shell.screen.line("there are no relations")


def drop(shell: Shell, arguments: str) -> None:
    from dlog.sessions.text import is_name

    if not arguments:
        raise _usage(".drop")
    session = shell.session
    what = arguments.rstrip()
    if is_name(what):
        shell.announce(session.drop_relation(what))
    else:
        rule = _placed(shell, what)
        shell.announce(session.drop_rules(rule if rule.endswith(".") else f"{rule}."))


def read(shell: Shell, arguments: str) -> None:
    from dlog.grammar.files import read_file
    from dlog.repl.statements import forced

    if not arguments:
        raise _usage(".read")
    path = Path(arguments.strip('"')).expanduser()
    text = read_file(path)
    found = forced(text)
    if all(statement.kind == "program" for statement in found):
        shell.announce(shell.session.add_rules(path), always=False)
    else:
        shell.run_script(str(path), found)


def _check_relation(shell: Shell, name: str) -> None:
    shell.session.rows(name)


# --------------------------------------------------------------------------------------------------------------------- the REPL


def stats(shell: Shell, arguments: str) -> None:
    from dlog.engine.values.sizes import byte_size
    from dlog.memory import current_bytes, peak_bytes

    session = shell.session
    rows = sum(session.rows(name) for name in session)
    staged = sum(session.staged.values())
    for name, value in (
        ("round", f"{session.round:,}"),
        ("relations", f"{len(session):,}"),
        ("rows", f"{rows:,}"),
        ("staged", f"{staged:,}"),
        ("memory", f"{byte_size(current_bytes())}, {byte_size(peak_bytes())} at most"),
        ("last statement", f"{shell.seconds * 1000:.1f} ms"),
    ):
        shell.screen.line(("head", f"{name:<16}"), value)


def limit(shell: Shell, arguments: str) -> None:
    if arguments and not (arguments.isdecimal() and len(arguments) < 19 and int(arguments)):
        raise _usage(".limit")
    shell.limit = int(arguments or shell.limit)
    shell.screen.line(("note", f"up to {shell.limit:,} rows are shown"))


def show_help(shell: Shell, arguments: str) -> None:
    if not arguments:
        width = max(len(page.usage) for page in PAGES.values())
        for page in PAGES.values():
            shell.screen.line(("head", f"{page.usage:<{width}}"), f"  {page.summary}")
        shell.screen.lines(SYNTAX)
        return
    name = page_of(arguments)
    if name is None:
        raise _unknown(f".{arguments.lstrip('.')}")
    page = PAGES[name]
    for title, text in (("NAME", f"{name} - {page.summary}"), ("SYNOPSIS", page.usage), ("DESCRIPTION", page.details)):
        shell.screen.line(("head", title))
        shell.screen.lines("\n".join(f"    {line}".rstrip() for line in text.strip("\n").split("\n")))


def leave(shell: Shell, arguments: str) -> None:
    shell.done = True




COMMANDS: Final[dict[str, Callable[[Shell, str], None]]] = {
    "begin": begin,
    "commit": commit,
    "rollback": rollback,
    ".why": why,
    ".whynot": why_not,
    ".load": load,
    ".save": save,
    ".relations": relations,
    ".schema": schema,
    ".plan": plan,
    ".drop": drop,
    ".read": read,
    ".stats": stats,
    ".limit": limit,
    ".help": show_help,
    ".quit": leave,
}
