"""The manifest: which files make up the state, and what they are.

It is one JSON file with a checksum, replaced as a whole. Until a new manifest is on the disk the old one holds, and with it
every file it names; whatever no manifest names does not count. As nothing can be read without it there is a copy, which only a
repair looks at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, astuple, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Kind
from dlog.engine.state import files, folders
from dlog.engine.state.entries import TableSize, measured
from dlog.engine.state.images import ImageFile
from dlog.engine.state.layers import LayerFile
from dlog.engine.state.segments import Extent, Start
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.description import Description
from dlog.grammar.diagnostics import Diagnostic, DlogError

NAME = "manifest.json"
COPY = "manifest.copy"
FORMAT = "dlog state"
VERSION = 3
FORMER = (1, 2)
"""Versions whose states are read and become of this one. Their tables have no checksums, their logs only those of payloads:
what is damaged in them is not noticed. An image of theirs is not gone on from."""


_PLAIN = re.compile(r"[\w@-][\w.@-]*\Z")


@dataclass(frozen=True, slots=True)
class BatchFiles:
    """A batch on disk."""

    description: Description
    layers: tuple[LayerFile, ...]


@dataclass(frozen=True, slots=True)
class RelationFiles:
    """A relation on disk: its kinds, and its batches from the oldest to the newest."""

    kinds: tuple[Kind, ...]
    batches: tuple[BatchFiles, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """`round` is the last one that the layers cover; the log goes on in segment `log`, and so much of it as `forced` says is
    on the disk; `next` numbers new files. The image may be of an earlier round than the layers. `state` is a number of its
    own."""

    state: int
    fingerprint: str
    round: int = 0
    log: int = 1
    forced: Extent = (1, 0)
    next: int = 1
    relations: dict[str, RelationFiles] = field(default_factory=dict)
    tables: dict[str, TableSize] = field(default_factory=dict)
    image: ImageFile | None = None

    @staticmethod
    def new(fingerprint: str) -> Manifest:
        """The manifest of an empty state."""
        return Manifest(uuid4().int >> 65, fingerprint)

    @property
    def start(self) -> Start:
        """The beginning of the log."""
        return Start(self.state, self.log, self.round, self.forced)

    def named_files(self) -> set[str]:
        """Layers and the image."""
        layers = {layer.name for r in self.relations.values() for batch in r.batches for layer in batch.layers}
        return layers if self.image is None else {*layers, self.image.name}


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Makes a manifest the one that holds."""
    told = _as_json(manifest)
    text = json.dumps({**told, "checksum": _checksum(told)}, indent=1).encode()
    with files.refusals(folder / NAME, "write"):
        files.create(folder / COPY, [text])
        files.replace(folder / NAME, text)


def read_manifest(folder: Path, name: str = NAME) -> Manifest | None:
    """The manifest that holds; None where there is none yet. One of a former version becomes one of this when it is written
    next: its `state` is 0."""
    path = folder / name
    if not folders.exists(path):
        return None
    content = files.content(path)
    try:
        told = json.loads(content)
        checksum = told.pop("checksum", None)
        format, version = told["format"], told["version"]
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise files.damaged(path, "the manifest cannot be read") from None
    known = format == FORMAT and version in (VERSION, *FORMER)
    if checksum != _checksum(told):
        notes = () if known else (f"it says that it is {format}, version {version}, and this dlog reads version {VERSION}",)
        raise files.damaged(path, "the manifest does not fit its checksum", *notes)
    if not known:
        notes = (f"this dlog reads version {VERSION}",)
        raise DlogError(Diagnostic("state-version", f"this is {format}, version {version}", notes=notes, place=str(path)))
    try:
        _refuse_elsewhere(path, told)
        return _understood(told if version == VERSION else _brought_up(folder, told))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise files.damaged(path, "the manifest makes no sense") from None


def _refuse_elsewhere(path: Path, told: dict[str, Any]) -> None:
    """Raises DlogError where a name leads out of the folder: files of these names are read, mended and put aside."""
    layers = (layer for r in told["relations"].values() for batch in r["batches"] for layer in batch["layers"])
    images = (told["image"]["name"],) if "image" in told else ()
    for file in (*(layer["file"] for layer in layers), *told["tables"], *images):
        if _PLAIN.match(file) is None:
            raise files.damaged(path, f"it names {file!r}, which is no file of a state")


def _brought_up(folder: Path, told: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a former version with what one of this has, as the files are found."""
    tables = {name: list(astuple(measured(folder, name, *size[:2]))) for name, size in told["tables"].items()}
    now = {**told, "state": 0, "forced": [told["log"], 0], "tables": tables}
    now.pop("image", None)
    return now


def _checksum(told: dict[str, Any]) -> int:
    return files.checksum(json.dumps(told, sort_keys=True).encode())


def _as_json(manifest: Manifest) -> dict[str, Any]:
    def batch(b: BatchFiles) -> dict[str, Any]:
        frontiers = {key: [list(time) for time in getattr(b.description, key)] for key in ("lower", "upper", "since")}
        layers = [{"file": f.name, "size": f.size, "checksum": f.checksum, "words": list(f.words)} for f in b.layers]
        return {**frontiers, "layers": layers}

    told: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "state": manifest.state,
        "fingerprint": manifest.fingerprint,
        "round": manifest.round,
        "log": manifest.log,
        "forced": manifest.forced,
        "next": manifest.next,
        "relations": {
            name: {"kinds": [kind.value for kind in r.kinds], "batches": [batch(b) for b in r.batches]}
            for name, r in manifest.relations.items()
        },
        "tables": {name: astuple(size) for name, size in manifest.tables.items()},
    }
    if manifest.image is not None:
        told["image"] = asdict(manifest.image)
    return told


def _count(found: Any) -> int:
    """A number of files, rounds or bytes, checked."""
    if type(found) is not int or not 0 <= found < 1 << 63:
        raise ValueError("no number of anything")
    return found


def _counts(found: list[Any]) -> Iterator[int]:
    return map(_count, found)


def _understood(told: dict[str, Any]) -> Manifest:
    def frontier(times: list[list[int]]) -> Antichain:
        return Antichain.of(tuple(_counts(time)) for time in times)

    def layer(found: dict[str, Any]) -> LayerFile:
        words = tuple(found["words"])
        if any(type(word) is not int or not -(1 << 63) <= word < 1 << 63 for word in words):
            raise ValueError("no words")
        return LayerFile(found["file"], _count(found["size"]), _count(found["checksum"]), words)

    def batch(found: dict[str, Any]) -> BatchFiles:
        description = Description(*(frontier(found[key]) for key in ("lower", "upper", "since")))
        return BatchFiles(description, tuple(map(layer, found["layers"])))

    relations = {
        name: RelationFiles(tuple(map(Kind, r["kinds"])), tuple(map(batch, r["batches"])))
        for name, r in told["relations"].items()
    }
    tables = {name: TableSize(*_counts(size)) for name, size in told["tables"].items()}
    segment, size = _counts(told["forced"])
    state, round, log, next = (_count(told[name]) for name in ("state", "round", "log", "next"))
    if not isinstance(told["fingerprint"], str):
        raise ValueError("a fingerprint is text")
    image = _image(told["image"]) if "image" in told else None
    return Manifest(state, told["fingerprint"], round, log, (segment, size), next, relations, tables, image)


def _image(told: dict[str, Any]) -> ImageFile:
    size, round, checksum = (_count(told[name]) for name in ("size", "round", "checksum"))
    if not isinstance(told["fingerprint"], str):
        raise ValueError("a fingerprint is text")
    return ImageFile(told["name"], size, round, told["fingerprint"], checksum)
