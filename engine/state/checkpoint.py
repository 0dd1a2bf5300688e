"""A checkpoint: moves what the log says into layers and tables, in steps that can be spread over time.

The log goes on in a new segment before it begins, so that rounds may be appended while it writes. Layers that are on disk
already are not written again. At the end its owner makes the new manifest hold; only then may files that no longer count be
removed. Giving up half-way leaves the old manifest in force; files already written are removed when the state is opened next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dlog.engine.ir.rules import Kind
from dlog.engine.state.entries import Entries, TableSize, extend_table
from dlog.engine.state.images import Content, write_image
from dlog.engine.state.layers import LayerFile, settled_batch, write_layer
from dlog.engine.state.manifest import BatchFiles, Manifest, RelationFiles
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.layer import Layer
from dlog.engine.values.table import Table

History = tuple[tuple[Kind, ...], Sequence[Batch]]
"""The kinds of a relation and its batches."""


def write_checkpoint(
    folder: Path,
    old: Manifest,
    known: Mapping[Layer, LayerFile],
    fingerprint: str,
    round: int,
    relations: Mapping[str, Table | History],
    tables: Mapping[str, Entries],
    image: Content | None,
) -> Iterator[tuple[Manifest, dict[Layer, LayerFile]] | None]:
    """Yields None after each file, at the end the manifest that is to hold, but for the log, and the files of its layers.
    Without an `image` that of before stays, if it is of this program."""
    number, file_of = old.next, {}
    described = {}
    for name, relation in relations.items():
        if isinstance(relation, Table):
            relation = relation.kinds, [settled_batch(relation, round + 1)]
        kinds, batches = relation
        for layer in (layer for batch in batches for layer in batch.layers):
            if layer in known:
                file_of[layer] = known[layer]
            else:
                file_of[layer] = write_layer(folder, f"{number:08d}.layer", layer)
                number += 1
                yield None
        described[name] = RelationFiles(
            kinds, tuple(BatchFiles(b.description, tuple(file_of[layer] for layer in b.layers)) for b in batches)
        )
    sizes = dict(old.tables)
    for name, entries in tables.items():
        sizes[name] = extend_table(folder, name, sizes.get(name, TableSize()), entries)
        yield None
    kept = old.image if old.image is not None and old.image.fingerprint == fingerprint else None
    if image is not None:
        kept = write_image(folder, f"{number:08d}.image", round, fingerprint, image, tables)
        number += 1
        yield None
    new = replace(old, fingerprint=fingerprint, round=round, next=number, relations=described, tables=sizes, image=kept)
    yield new, file_of
