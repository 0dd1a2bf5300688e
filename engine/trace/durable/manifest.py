"""The manifest: which files make up the state, and what they are.

It is one JSON file with a checksum, replaced as a whole. Until a new manifest is on the disk the old one holds, and with it
every file it names; whatever no manifest names does not count.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dlog.engine.program.rules import Kind
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.description import Description
from dlog.engine.trace.durable import files
from dlog.engine.trace.durable.entries import TableSize
from dlog.engine.trace.durable.images import ImageFile
from dlog.engine.trace.durable.layers import LayerFile
from dlog.grammar.diagnostics import Diagnostic, DlogError

NAME = "manifest.json"
FORMAT = "dlog state"
VERSION = 2
EARLIER = (1,)
"""Versions whose states are read and become of this one. Those of version 1 have no parts, which it would pass over."""


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
    """`round` is the last one that the layers cover; the log goes on in segment `log`; `next` numbers new files. The image may
    be of an earlier round than the layers."""

    fingerprint: str
    round: int = 0
    log: int = 1
    next: int = 1
    relations: dict[str, RelationFiles] = field(default_factory=dict)
    tables: dict[str, TableSize] = field(default_factory=dict)
    image: ImageFile | None = None

    def named_files(self) -> set[str]:
        """Layers and the image."""
        layers = {layer.name for r in self.relations.values() for batch in r.batches for layer in batch.layers}
        return layers if self.image is None else {*layers, self.image.name}


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Makes a manifest the one that holds."""
    told = _told(manifest)
    text = json.dumps({**told, "checksum": _checksum(told)}, indent=1)
    with files.refusals(folder / NAME, "write"):
        files.replace(folder / NAME, text.encode())


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest that holds, which is of this version from now on; None where there is none yet."""
    path = folder / NAME
    if not path.exists():
        return None
    with files.refusals(path, "read"):
        content = path.read_bytes()
    try:
        told = json.loads(content)
        checksum = told.pop("checksum", None)
        format, version = told["format"], told["version"]
    except (ValueError, KeyError, AttributeError, TypeError):
        raise files.damaged(path, "the manifest cannot be read") from None
    if format != FORMAT or version not in (VERSION, *EARLIER):
        notes = (f"this dlog reads version {VERSION}",)
        raise DlogError(Diagnostic("state-version", f"this is {format}, version {version}", notes=notes, place=str(path)))
    if checksum != _checksum(told):
        raise files.damaged(path, "the manifest does not fit its checksum")
    found = _understood(told)
    if version != VERSION:
        write_manifest(folder, found)
    return found


def _checksum(told: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(told, sort_keys=True).encode())


def _told(manifest: Manifest) -> dict[str, Any]:
    def batch(b: BatchFiles) -> dict[str, Any]:
        frontiers = {key: [list(time) for time in getattr(b.description, key)] for key in ("lower", "upper", "since")}
        layers = [{"file": f.name, "size": f.size, "checksum": f.checksum, "words": list(f.words)} for f in b.layers]
        return {**frontiers, "layers": layers}

    told: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "fingerprint": manifest.fingerprint,
        "round": manifest.round,
        "log": manifest.log,
        "next": manifest.next,
        "relations": {
            name: {"kinds": [kind.value for kind in r.kinds], "batches": [batch(b) for b in r.batches]}
            for name, r in manifest.relations.items()
        },
        "tables": {name: [size.entries, size.bytes] for name, size in manifest.tables.items()},
    }
    if manifest.image is not None:
        told["image"] = asdict(manifest.image)
    return told


def _understood(told: dict[str, Any]) -> Manifest:
    def frontier(times: list[list[int]]) -> Antichain:
        return Antichain.of(map(tuple, times))

    def batch(found: dict[str, Any]) -> BatchFiles:
        description = Description(*(frontier(found[key]) for key in ("lower", "upper", "since")))
        layers = (LayerFile(f["file"], f["size"], f["checksum"], tuple(f["words"])) for f in found["layers"])
        return BatchFiles(description, tuple(layers))

    relations = {
        name: RelationFiles(tuple(map(Kind, r["kinds"])), tuple(map(batch, r["batches"])))
        for name, r in told["relations"].items()
    }
    tables = {name: TableSize(*size) for name, size in told["tables"].items()}
    image = ImageFile(**told["image"]) if "image" in told else None
    return Manifest(told["fingerprint"], told["round"], told["log"], told["next"], relations, tables, image)
