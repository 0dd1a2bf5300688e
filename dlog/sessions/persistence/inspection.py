"""The state of a session without a session: `dlog state check`, `repair` and `dump`.

A check reads and verifies every file. A repair brings back what follows from the rest, or can be read without it; where the
rows of an input are lost it refuses, unless they are given up by name. A dump writes what can be read as files that a new
session, or `dlog run`, takes, and works on a copy. All three have the folder to themselves.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from dlog.caches import own_lease
from dlog.engine.compile.past import is_declared
from dlog.engine.compile.timed.findings import FOUND, Finding, findings
from dlog.engine.formats import save
from dlog.engine.ir.rules import Io, Program, Relation
from dlog.engine.state import files, folders, parts
from dlog.engine.state.entries import Entries
from dlog.engine.state.folders import OpenFolder
from dlog.engine.state.lock import Lock
from dlog.engine.state.log import LoggedRound
from dlog.engine.state.manifest import COPY, NAME
from dlog.engine.state.repair import Inspection, inspect, irreparable, repair
from dlog.engine.state.segments import span
from dlog.grammar import syntax
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.sessions.marks import MARK
from dlog.sessions.mistakes import mistake
from dlog.sessions.persistence.bulk_files import TABLE, BulkChange
from dlog.sessions.persistence.external_relations import DERIVED, FOLLOWING, ExternalRelations
from dlog.sessions.persistence.folder import State
from dlog.sessions.persistence.stored_history import PAST
from dlog.sessions.text import Text, stored_text


def check_state(folder: str | Path) -> list[str]:
    """Verifies every file of a state and every row of its inputs, and says what is in it. Raises DlogError with all that is
    damaged."""
    with _looked_over(folder) as found:
        lost = [*found.errors, *_lost_parts(found).values()] or _strange(found)
        if lost:
            raise _together(lost)
        return _contents(found)


def repair_state(folder: str | Path, without: Collection[str] = ()) -> list[str]:
    """Brings back what can be brought back of a damaged state, and says what that is, and what is lost. The files as they were
    are put aside in a folder beside them. Raises DlogError where inputs are lost, and changes nothing then; inputs of the names
    `without` are given up instead: they have no rows any more."""
    with _looked_over(folder) as found:
        return _repaired(found, without)


def dump_state(folder: str | Path, output: str | Path) -> list[str]:
    """Writes the program of a state without its facts, all rows from outside as facts files, so that `dlog run` or a new
    session can begin with them, and what events have found, with which a session goes on; as of the last round that can be
    read. Raises DlogError where something cannot be read, after everything else has been written."""
    with _looked_over(folder) as found, own_lease("dump") as place:
        wrong = irreparable(found, lambda name: True)
        if wrong:
            raise _together(wrong)
        copy = _copied(found.folder, place)
        lost = _lost_parts(found) | found.contents.lost_relations
        inputs = {_input(name) for name in lost if not name.endswith(FOLLOWING)}
        said = [line for line in _repaired(inspect(copy), inputs) if line.startswith("lost: ")]
        said += _dumped(copy, Path(output), inputs)
    if inputs:
        raise _not_dumped({name: error for name, error in lost.items() if not name.endswith(FOLLOWING)})
    return said


# ------------------------------------------------------------------------------------------------------------------ looking


@contextmanager
def _looked_over(folder: str | Path) -> Iterator[Inspection]:
    """Inspects a folder, which nobody else has meanwhile."""
    path = Path(folder)
    with ExitStack() as held:
        if path.is_dir():
            with files.refusals(path, "open"):
                held.enter_context(OpenFolder(path))
        if not any(folders.exists(path / name) for name in (NAME, COPY)):
            raise DlogError(Diagnostic("state-missing", "there is no state of dlog", place=str(path)))
        lock = Lock(path)
        held.callback(lock.release)
        yield inspect(path)


def _rounds(found: Inspection) -> list[LoggedRound]:
    """The rounds in the log up to where it is damaged."""
    rounds: list[LoggedRound] = []
    for segment in found.contents.segments:
        rounds += segment.rounds() if segment.records else []
        if segment.damage is not None:
            break
    return rounds


def _external_relations(found: Inspection) -> ExternalRelations:
    return ExternalRelations.of(found.folder, found.contents.relations, found.contents.tables, _rounds(found))


def _lost_parts(found: Inspection) -> dict[str, DlogError]:
    """The damage to files of bulk changes, by relation."""
    lost: dict[str, DlogError] = {}
    for name, rows in _external_relations(found).rows.items():
        for part in (part for s in rows.epochs if s.bulk is not None for part in s.bulk.parts):
            try:
                parts.check(found.folder, part)
            except DlogError as error:
                lost[name] = _together([*([lost[name]] if name in lost else []), error])
    return lost


def _strange(found: Inspection) -> list[DlogError]:
    """What a session would refuse though all checksums are right: rows of inputs with ids of nothing, a history that
    makes no sense, a text that is no program."""
    wrong = []
    with own_lease("dump") as place:
        copy = _copied(found.folder, place)
        try:
            with _opened(copy) as (state, _, program):
                for relation in program.relations.values():
                    try:
                        state.external(relation.name, relation.kinds)
                    except DlogError as error:
                        wrong.append(_elsewhere(error, copy, found.folder))
                state.check_history()
        except DlogError as error:
            wrong.append(_elsewhere(error, copy, found.folder))
    return wrong


def _elsewhere(error: DlogError, copy: Path, folder: Path) -> DlogError:
    """An error of a copy as one of what it was copied from."""

    def there(text: str) -> str:
        return text.replace(shlex.quote(str(copy)), shlex.quote(str(folder)))

    def moved(found: Diagnostic) -> Diagnostic:
        return replace(found, place=found.place.replace(str(copy), str(folder)), notes=tuple(map(there, found.notes)))

    return DlogError(list(map(moved, error.diagnostics)))


def _contents(found: Inspection) -> list[str]:
    manifest, rounds = found.manifest, _rounds(found)
    assert manifest is not None
    said = [f"round {found.contents.segments[-1].last_round}"]
    for name, stored in sorted(found.contents.relations.items()):
        if name != MARK and not name.endswith(PAST):
            rows = sum(layer.rows for batch in stored.batches for layer in batch.layers)
            said.append(f"  {name.removesuffix(DERIVED)}: {rows:,} rows as of round {manifest.round}")
    if rounds:
        changes = sum(u.rows for logged in rounds for name, u in logged.changes.items() if not name.endswith(PAST))
        noun = "change" if changes == 1 else "changes"
        said.append(f"  {span(manifest.round + 1, rounds[-1].round)} in the log: {changes:,} {noun} of inputs")
    return said


def _together(errors: Sequence[DlogError]) -> DlogError:
    return DlogError([diagnostic for error in errors for diagnostic in error.diagnostics])


# ---------------------------------------------------------------------------------------------------------------- repairing


def _input(name: str) -> str:
    """The relation that a checkpoint has written something of: `edge` of `edge`, `edge/3+` and `edge/rows`."""
    return name.split("/")[0]


def _repaired(found: Inspection, without: Collection[str]) -> list[str]:
    lost = _lost_parts(found)
    if not lost and not without and not list(found.errors):
        return []
    inputs = sorted({*lost, *(_input(name) for name in found.contents.lost_relations if not name.endswith(FOLLOWING))} - {""})
    wrong = irreparable(found, lambda name: name.endswith(FOLLOWING) or _input(name) in without)
    wrong += [error for name, error in lost.items() if name not in without]
    if wrong:
        raise _beyond_repair(found.folder, wrong, () if found.contents.lost_tables else inputs)
    intact = [name for name in without if name not in inputs]
    if intact:
        raise mistake("not-damaged", f"the rows of `{intact[0]}` are not damaged: there is nothing to give up")
    derived = sorted(name for name in found.contents.lost_relations if name.endswith(DERIVED))
    said = [f"`{name.removesuffix(DERIVED)}` is derived anew when the state is opened" for name in derived]
    past = any(name.endswith(PAST) for name in found.contents.lost_relations)
    said += ["the history begins anew when the state is opened"] * past
    said += [f"lost: all rows of the input `{name}`" for name in inputs]
    drops = {TABLE: Entries.of([BulkChange(name, (), 0, ()).entry for name in inputs])} if inputs else {}
    dropped = (*(FOLLOWING if inputs else ()), *((PAST,) if past else ()))
    return said + repair(found, lambda name: name.endswith(dropped), drops)


def _beyond_repair(folder: Path, errors: Sequence[DlogError], inputs: Sequence[str]) -> DlogError:
    note = "nothing has been changed: nothing else in the state has what is damaged here, take it from a copy"
    flags = " ".join(f"--without {shlex.quote(name)}" for name in inputs)
    cure = f"or go on without the rows: `dlog state repair {shlex.quote(str(folder))} {flags}`"
    given = [replace(d, notes=(note, cure) if inputs else (note,)) for error in errors for d in error.diagnostics]
    return DlogError(given)


def _not_dumped(lost: Mapping[str, DlogError]) -> DlogError:
    return DlogError(
        [
            replace(diagnostic, notes=(f"`{_input(name)}` is not in what was written, everything else is",))
            for name, error in lost.items()
            for diagnostic in error.diagnostics
        ]
    )


# ------------------------------------------------------------------------------------------------------------------ dumping


_CHANGING = (".log", ".bytes", ".ends", ".json", ".copy")
"""How the names of files end that a copy is made of, not a link to."""


def _copied(folder: Path, place: Path) -> Path:
    """A copy of a state: files that never change are links. What others have put there besides is left out, and what says that
    it is larger than the disk is refused."""
    copy = place / "state"
    copy.mkdir()
    for path in map(folder.joinpath, folders.names(folder)):
        if path.suffix in (".layer", ".image", parts.SUFFIX) and hasattr(os, "symlink"):
            (copy / path.name).symlink_to(path.absolute())
        elif path.suffix in _CHANGING and folders.exists(path):
            with files.refusals(path, "read"), files.to_read(path) as source, (copy / path.name).open("xb") as target:
                if os.fstat(source.fileno()).st_size > shutil.disk_usage(place).free:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                shutil.copyfileobj(source, target)
    return copy


@contextmanager
def _opened(copy: Path) -> Iterator[tuple[State, Text, Program]]:
    """A copy of a state, with its program; one without a text has that of no relations."""
    state = State(copy, "never", None)
    try:
        text = stored_text(state.text or "", copy)
        program = text.checked()
        state.means(program)
        yield state, text, program
    finally:
        state.close()


def _dumped(folder: Path, output: Path, without: Collection[str]) -> list[str]:
    with _opened(folder) as (state, text, program):
        if state.text is None:
            return ["the state is empty"]
        held = set(state.externals()) - set(without)
        names = [name for name in program.relations if name in held and is_declared(name)]
        found = [finding for finding in findings(program) if finding.kept not in without]
        with files.refusals(output, "write"):
            output.mkdir(parents=True, exist_ok=True)
            files.replace(output / "program.dl", _reading(text, names, found).encode())
        said = [f"{output / 'program.dl'}: the program as of round {state.round}"]
        said += [_written(state, program, program.relations[name], name, output) for name in names]
        return said + [_found(state, program, finding, output) for finding in found]


_FORMAT = (("rfc4180", "true"),)


def _reading(text: Text, inputs: Sequence[str], found: Sequence[Finding]) -> str:
    """The program without facts, which reads these inputs, and what events have found, from the files of a dump."""
    items = _without_rows(text.items)
    lines = [f'.input {name}(filename="{name}.csv", rfc4180=true)' for name in inputs]
    heads = ((finding.name.split("@")[0], finding.name) for finding in found)
    lines += [f'.input {head}({FOUND}="{name}", filename="{name}.csv", rfc4180=true)' for head, name in heads]
    return "\n".join([str(replace(text, items=items)).rstrip("\n"), *lines, ""])


def _without_rows(items: tuple[syntax.Item, ...]) -> tuple[syntax.Item, ...]:
    """Items but for facts and inputs, those in components included."""
    left = (item for item in items if not _says_rows(item))
    return tuple(replace(i, items=_without_rows(i.items)) if isinstance(i, syntax.ComponentDecl) else i for i in left)


def _says_rows(item: syntax.Item) -> bool:
    fact = isinstance(item, syntax.Clause) and item.body is None
    return fact or (isinstance(item, syntax.Directive) and item.kind == "input")


def _written(state: State, program: Program, relation: Relation, name: str, output: Path) -> str:
    table = state.external(relation.name, relation.kinds)
    io = Io("output", relation.name, (("filename", f"{name}.csv"), *_FORMAT), relation.span)
    save(io, relation, program, table, state.interned.symbols, state.interned.records, output)
    return f"{output / f'{name}.csv'}: {table.rows:,} {'row' if table.rows == 1 else 'rows'}"


def _found(state: State, program: Program, finding: Finding, output: Path) -> str:
    """Writes what events have found."""
    said = _written(state, program, program.relations[finding.kept], finding.name, output)
    return f"{said}, what events found: {', '.join(finding.columns)}, how often, the round"
