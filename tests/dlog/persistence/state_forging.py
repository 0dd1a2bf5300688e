"""States whose files somebody has changed so that all checksums are right again, and what becomes of them.

A session on such a state, or a look at it, says something or refuses: a traceback or a signal is wrong. What it says may be
anything that a state can hold.
"""

from __future__ import annotations

import json
import random
import struct
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dlog
from dlog.engine.state import files
from dlog.engine.state.manifest import _checksum
from dlog.engine.state.records import HEADER_SIZE, Framing, Header
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.persistence.inspection import check_state, dump_state, repair_state
from tests.dlog.persistence.state_damage import HISTORY, Files, written
from tests.dlog.persistence.state_model import PROGRAM, all_rows, commit
from tests.dlog.persistence.state_sessions import crash

WORDS = (-1, 0, 1, 2, 3, 7, 1 << 16, 1 << 30, (1 << 31) - 1, -(1 << 31), 1 << 32, 1 << 62, -(1 << 63))
OTHERS = (None, "", "x", 1.5, [], {}, [[]], [1, 2], True, "symbol", "record", "..")
MANIFESTS = ("manifest.json", "manifest.copy")


def forged(content: Files, kind: str, rng: random.Random) -> Files:
    """The files with one of a kind changed, and all that says that it is right."""
    return FORGERS[kind](content, rng)


def _manifest(content: Files, rng: random.Random) -> Files:
    told = json.loads(content["manifest.json"])
    places = list(_places(told))
    inside, key = rng.choice(places)
    inside[key] = rng.choice(WORDS if rng.random() < 0.6 else OTHERS)
    return _with(content, told)


def _places(told: Any) -> Iterator[tuple[Any, Any]]:
    listed = list(told.items()) if isinstance(told, dict) else list(enumerate(told)) if isinstance(told, list) else []
    for key, value in listed:
        if key != "checksum" or "version" not in told:
            yield told, key
        yield from _places(value)


def _with(content: Files, told: dict[str, Any]) -> Files:
    told.pop("checksum", None)
    text = json.dumps({**told, "checksum": _checksum(told)}).encode()
    return {**content, **dict.fromkeys(MANIFESTS, text)}


def _layer(content: Files, rng: random.Random) -> Files:
    told = json.loads(content["manifest.json"])
    layers = [layer for r in told["relations"].values() for batch in r["batches"] for layer in batch["layers"]]
    if not layers:
        return content
    layer = rng.choice(layers)
    if rng.random() < 0.3:
        layer["words"][rng.randrange(len(layer["words"]))] = rng.choice(WORDS)
        return _with(content, told)
    changed = _other_words(content[layer["file"]], rng)
    layer["checksum"] = files.checksum(changed)
    return _with({**content, layer["file"]: changed}, told)


def _other_words(content: bytes, rng: random.Random) -> bytes:
    """Some words, of 8 bytes or of 4, are others."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        form = rng.choice("iq")
        size = struct.calcsize(form)
        if len(changed) < size:
            continue
        least, most = -(1 << 8 * size - 1), (1 << 8 * size - 1) - 1
        at = rng.randrange(len(changed) // size) * size
        struct.pack_into(f"<{form}", changed, at, min(max(rng.choice((*WORDS, rng.randrange(40))), least), most))
    return bytes(changed)


def _table(content: Files, rng: random.Random) -> Files:
    told = json.loads(content["manifest.json"])
    names = sorted(name for name, size in told["tables"].items() if size[0])
    if not names:
        return content
    name = rng.choice(names)
    size = told["tables"][name]
    data, ends = content[f"{name}.bytes"][: size[1]], content[f"{name}.ends"][: 8 * size[0]]
    if rng.random() < 0.5:
        ends = _other_words(ends, rng)
    elif name == "lots":
        data = _other_text(data, rng)
    else:
        data = _other_words(data, rng)
    told["tables"][name] = [size[0], size[1], files.checksum(data), files.checksum(ends)]
    return _with({**content, f"{name}.bytes": data, f"{name}.ends": ends}, told)


def _other_text(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.choice(b'0129[]{}",-nefx')]) + data[at + 1 :]


def _log(content: Files, rng: random.Random) -> Files:
    name = rng.choice(sorted(n for n in content if n.endswith(".log")))
    log = content[name]
    header = Header.decode(log)
    assert header is not None
    framing = Framing.of(header.state, header.number)
    records = list(framing.whole(log))
    if not records:
        return content
    chosen, made = rng.choice(records), log[:HEADER_SIZE]
    for record in records:
        payload = log[record.start : record.end]
        if record is chosen:
            payload = _other_payload(payload, rng)
        made += framing.framed(payload, len(made), record.before, record.round)
    return {**content, name: made}


def _other_payload(payload: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.15:
        return payload[: rng.randrange(len(payload))] + rng.randbytes(rng.randrange(9))
    changed = bytearray(payload)
    for _ in range(rng.choice((1, 1, 1, 3))):
        size = rng.choice((1, 1, 2, 4, 8))
        at = rng.randrange(max(len(changed) - size, 1))
        value = rng.choice((*WORDS, rng.randrange(40), rng.randrange(256)))
        changed[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")[: len(changed) - at]
    return bytes(changed)


def _part(content: Files, rng: random.Random) -> Files:
    """A file of rows, which an entry in the log or in the table of lots has the checksum of."""
    names = sorted(name for name in content if name.endswith(".parquet"))
    if not names:
        return content
    name = rng.choice(names)
    changed = _other_payload(content[name], rng)
    old, new = (f'"{name}", {len(c)}, {files.checksum(c)}'.encode() for c in (content[name], changed))
    return _replaced({**content, name: changed}, old, new)


def _replaced(content: Files, old: bytes, new: bytes) -> Files:
    """Text of an entry that may have another length now."""
    from dlog.engine.state.entries import Entries
    from dlog.engine.state.log import decode, encode

    told = json.loads(content["manifest.json"])
    found = dict(content)
    if "lots" in told["tables"] and old in content["lots.bytes"]:
        entries = told["tables"]["lots"][0]
        ends = struct.unpack(f"<{entries}q", content["lots.ends"][: 8 * entries])
        pieces = [content["lots.bytes"][a:b].replace(old, new) for a, b in zip((0, *ends), ends, strict=False)]
        table = Entries.of(pieces)
        data, offsets = table.data.tobytes(), table.offsets[1:].tobytes()
        told["tables"]["lots"] = [entries, len(data), files.checksum(data), files.checksum(offsets)]
        found = _with({**found, "lots.bytes": data, "lots.ends": offsets}, told)
    for name in (n for n in content if n.endswith(".log") and old in content[n]):
        log = content[name]
        header = Header.decode(log)
        assert header is not None
        framing, made = Framing.of(header.state, header.number), log[:HEADER_SIZE]
        for record in framing.whole(log):
            said = decode(memoryview(log)[record.start : record.end], record.round)
            tables = {n: Entries.of([p.replace(old, new) for p in e.pieces()]) for n, e in said.tables.items()}
            made += framing.framed(encode(said.round, said.changes, tables), len(made), record.before, record.round)
        found[name] = made
    return found


FORGERS: dict[str, Callable[[Files, random.Random], Files]] = {
    "manifest": _manifest,
    "layer": _layer,
    "table": _table,
    "log": _log,
    "part": _part,
}


def uses(folder: Path) -> Iterator[str]:
    """What goes wrong with a state, in any use of it."""
    for use in (_session, _own_program, check_state, lambda f: dump_state(f, f.parent / "dumped"), repair_state, _session):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                use(folder)
            except DlogError as error:
                if any(d.code == "internal" for d in error.diagnostics):
                    yield str(error)
            except Exception as error:  # whatever it is
                yield f"{type(error).__name__}: {error}"


def _session(folder: Path) -> None:
    session = dlog.session(PROGRAM, state=folder, threads=1, sync="never", history=HISTORY)
    try:
        all_rows(session)
        for past in range(session._followers.oldest(), session.round):
            with session.at(past) as view:
                assert {name: len(list(view[name])) == view[name].rows for name in view}
        commit(session, 5, 1)
        all_rows(session)
    finally:
        crash(session)


def _own_program(folder: Path) -> None:
    with dlog.session(None, state=folder, threads=1, sync="never") as session:
        all_rows(session)


def wrong(content: Files, folder: Path, kind: str, seed: int) -> list[str]:
    """What goes wrong with a state forged in one way."""
    changed = forged(content, kind, random.Random(f"{kind} {seed}"))
    return list(uses(written(changed, folder)))
