"""The contents that a manifest names, read and verified: relations, tables and the log; and the damage found in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path

from dlog.dataclass import dataclass
from dlog.engine.state.entries import Entries, read_table
from dlog.engine.state.files import damaged
from dlog.engine.state.layers import LayerFile, Stored, map_layer
from dlog.engine.state.manifest import NAME, Manifest
from dlog.engine.state.segments import Segment, read_log
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.layer import Layer
from dlog.grammar.diagnostics import DlogError


@dataclass(frozen=True, slots=True)
class Contents:
    """Relations and tables that are whole by name, the segments of the log as far as they are there; and the errors of all that
    is damaged. `file_of` has the files of the layers."""

    relations: dict[str, Stored] = field(default_factory=dict)
    file_of: dict[Layer, LayerFile] = field(default_factory=dict)
    tables: dict[str, Entries] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    lost_relations: dict[str, DlogError] = field(default_factory=dict)
    lost_tables: dict[str, DlogError] = field(default_factory=dict)
    lost_log: list[DlogError] = field(default_factory=list)

    def damage(self, follows: Callable[[str], bool]) -> Iterator[DlogError]:
        """All errors but those of relations that follow from others."""
        yield from self.lost_log
        yield from self.lost_tables.values()
        yield from (error for name, error in self.lost_relations.items() if not follows(name))


def read_contents(folder: Path, manifest: Manifest) -> Contents:
    """Everything but the image and the parts."""
    found = Contents()
    for name in manifest.relations:
        try:
            found.relations[name] = map_relation(folder, manifest, name, found.file_of, verify=True)
        except DlogError as error:
            found.lost_relations[name] = error
    for name, size in manifest.tables.items():
        try:
            found.tables[name] = read_table(folder, name, size)
        except DlogError as error:
            found.lost_tables[name] = error
    found.segments.extend(read_log(folder, manifest.start))
    found.lost_log.extend(s.error for s in found.segments if s.error is not None)
    return found


def map_relation(folder: Path, manifest: Manifest, name: str, file_of: dict[Layer, LayerFile], verify: bool) -> Stored:
    """A relation of the manifest; notes the files of its layers."""
    relation = manifest.relations[name]
    batches = []
    for batch in relation.batches:
        layers = tuple(map_layer(folder, file, len(relation.kinds), verify) for file in batch.layers)
        file_of.update(zip(layers, batch.layers, strict=True))
        batches.append(Batch(batch.description, layers))
        if verify and not batches[-1].parted:
            raise damaged(folder / NAME, f"a batch of `{name}` has layers that make no sense together")
    return Stored(relation.kinds, tuple(batches))
