"""A state that is looked over without being opened, and what can be brought back of a damaged one.

    found = inspect(folder)             # under the folder's lock
    repair(found, given_up)             # says what was lost

Nothing is destroyed: before a repair changes a file it puts it into a folder beside. It can be cut off and done again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.state import files, folders
from dlog.engine.state.contents import Contents, read_contents
from dlog.engine.state.entries import Entries, paths_of, read_table
from dlog.engine.state.images import map_image
from dlog.engine.state.log import encode
from dlog.engine.state.manifest import COPY, NAME, Manifest, read_manifest, write_manifest
from dlog.engine.state.records import HEADER_SIZE, Framing, Header
from dlog.engine.state.segments import Segment, read_log, segment_path, span
from dlog.grammar.diagnostics import Diagnostic, DlogError

ASIDE = "damaged-"
"""Begins the names of the folders of what was put aside."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The findings about a state. `manifest` may be the copy, where the one that holds is `unreadable`; None where that is
    damaged, too. `copy` is what is wrong with the copy."""

    folder: Path
    manifest: Manifest | None
    unreadable: DlogError | None
    copy: DlogError | None
    contents: Contents = field(default_factory=Contents)
    image: DlogError | None = None

    @property
    def errors(self) -> Iterator[DlogError]:
        """Everything that is damaged."""
        yield from (error for error in (self.unreadable, self.copy) if error is not None)
        yield from self.contents.damage(lambda name: False)
        yield from [] if self.image is None else [self.image]


def inspect(folder: Path) -> Inspection:
    """Reads and verifies everything but parts. Changes nothing. Raises DlogError where there is no state, or one of another
    version."""
    if not folders.exists(folder / NAME) and not folders.exists(folder / COPY):
        raise DlogError(Diagnostic("state-missing", "there is no state of dlog", place=str(folder)))
    manifest, unreadable = _manifest(folder, NAME)
    copied, copy = _manifest(folder, COPY)
    former = manifest is not None and not manifest.state  # those have no copy
    found = Inspection(folder, manifest or copied, unreadable, None if former else copy)
    if found.manifest is None:
        return found
    contents, image = read_contents(folder, found.manifest), _wrong_image(folder, found.manifest)
    return replace(found, contents=contents, image=image)


def _manifest(folder: Path, name: str) -> tuple[Manifest | None, DlogError | None]:
    """A manifest, or what is wrong with it. Raises DlogError for one of another version."""
    try:
        found = read_manifest(folder, name)
    except DlogError as error:
        if error.diagnostics[0].code != "state-corrupt":
            raise
        return None, error
    return (found, None) if found is not None else (None, files.damaged(folder / name, "the manifest is missing"))


def _wrong_image(folder: Path, manifest: Manifest) -> DlogError | None:
    if manifest.image is None or map_image(folder, manifest.image) is not None:
        return None
    return files.damaged(folder / manifest.image.name, "an image is not what was written")


# ------------------------------------------------------------------------------------------------------------------- repair


def irreparable(found: Inspection, given_up: Callable[[str], bool]) -> list[DlogError]:
    """The damage of what follows from nothing else."""
    if found.manifest is None:
        assert found.unreadable is not None
        return [found.unreadable]
    tables = [error for name, error in found.contents.lost_tables.items() if _even_ends(found, name) is None]
    return tables + [error for name, error in found.contents.lost_relations.items() if not given_up(name)]


def repair(found: Inspection, dropped: Callable[[str], bool], tables: Mapping[str, Entries]) -> list[str]:
    """Brings back everything but relations that are damaged or to be `dropped`; where one is to be that is neither damaged nor
    there is no image either. `tables` are added in a round of their own. Says what was done, and what was lost. Nothing must be
    irreparable. The manifest is written last: up to then the state stays damaged."""
    assert found.manifest is not None
    with closing(_Aside(found.folder)) as aside:
        said = _repaired(found, dropped, tables, aside)
        return [*said, *([] if aside.path is None else [f"the files as they were are in {aside.path}"])]


def _repaired(
    found: Inspection, dropped: Callable[[str], bool], tables: Mapping[str, Entries], aside: _Aside
) -> list[str]:
    assert found.manifest is not None
    said = [] if found.unreadable is None else [f"{NAME} is written anew from its copy"]
    said += [] if found.copy is None else [f"{COPY} is written anew"]
    aside.keep([NAME, COPY] if said else [])
    without = [name for name in found.manifest.relations if name in found.contents.lost_relations or dropped(name)]
    manifest = _without(found.manifest, without, found.image is not None or bool(tables), aside)
    said += ["the image is dropped: what it kept is derived anew"] * (found.image is not None)
    said += [_mended_ends(found, name, aside) for name in found.contents.lost_tables]
    manifest, log = _mended_log(found.folder, manifest, aside)
    said += log
    if tables:
        manifest = _appended(found.folder, manifest, tables, aside)
    if manifest != found.manifest or found.unreadable is not None or found.copy is not None:
        aside.keep([NAME])
        write_manifest(found.folder, manifest)
    return said


class _Aside:
    """A folder beside the files of a state for those that a repair changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path: Path | None = None
        """None while nothing is in it."""
        self._descriptor = -1
        self._copied: set[str] = set()

    def keep(self, names: Collection[str]) -> None:
        """Puts files there as they are, those that are there already as they were. Others may have made the state: what has the
        names may be links, and what lies in the folder may change while it is repaired."""
        with files.refusals(self.folder, "write"):
            for name in names:
                if name not in self._copied and folders.about(self.folder / name, follow=False) is not None:
                    if self.path is None:
                        self.path, self._descriptor = files.folder_beside(self.folder, ASIDE)
                    files.copy_into(self.folder / name, self._descriptor)
                    self._copied.add(name)
            if self.path is not None:
                os.fsync(self._descriptor)
                files.sync_folder(self.folder)

    def close(self) -> None:
        if self.path is not None:
            os.close(self._descriptor)


def _without(manifest: Manifest, dropped: Collection[str], image: bool, aside: _Aside) -> Manifest:
    """A manifest without relations, and without the image."""
    for name in dropped:
        aside.keep([layer.name for batch in manifest.relations[name].batches for layer in batch.layers])
    if image and manifest.image is not None:
        aside.keep([manifest.image.name])
    relations = {name: relation for name, relation in manifest.relations.items() if name not in dropped}
    own = manifest.state or Manifest.new("").state  # one of a former version has none
    return replace(manifest, state=own, relations=relations, image=None if image else manifest.image)


def _even_ends(found: Inspection, name: str) -> bytes | None:
    """The ends of entries that all have the same length, if those are what was written: their checksum says so."""
    assert found.manifest is not None
    size = found.manifest.tables[name]
    if not size.entries or size.bytes % size.entries:
        return None
    ends = np.arange(1, size.entries + 1, dtype=np.int64) * (size.bytes // size.entries)
    if files.checksum(ends) != size.ends:
        return None
    try:
        data = files.mapped(paths_of(found.folder, name)[0], size.bytes)
    except DlogError:
        return None
    return ends.tobytes() if files.checksum(data) == size.data else None


def _mended_ends(found: Inspection, name: str, aside: _Aside) -> str:
    ends = _even_ends(found, name)
    path = paths_of(found.folder, name)[1]
    assert ends is not None and found.manifest is not None
    aside.keep([path.name])
    with files.refusals(path, "write"):
        files.replace(path, ends)
    read_table(found.folder, name, found.manifest.tables[name])
    return f"{path.name} is written anew: it fits its checksum again"


def _mended_log(folder: Path, manifest: Manifest, aside: _Aside) -> tuple[Manifest, list[str]]:
    """The log without damage, up to where its records are whole; what is behind does not count without what is missing."""
    said: list[str] = []
    while True:
        segments = read_log(folder, manifest.start)
        bad = next((s for s in segments if s.damage is not None), None)
        if bad is None:
            return manifest, said
        aside.keep([s.path.name for s in segments if s.number >= bad.number])
        there = folders.exists(bad.path)
        content = files.content(bad.path) if there else b""
        if not bad.former and there and Header.decode(content) is None:
            _rewrite(bad.path, bad.header.encode() + content[HEADER_SIZE:])
            said.append(f"the header of {bad.path.name} is written anew")
            continue
        kept = _restored(bad, segments, content, manifest)
        said.append(_loss_text(bad, segments, manifest))
        _rewrite(bad.path, kept)
        for later in reversed([s for s in segments if s.number > bad.number]):
            with files.refusals(later.path, "remove"):
                files.remove(later.path)
        manifest = replace(manifest, forced=(bad.number, len(kept)))


def _appended(folder: Path, manifest: Manifest, tables: Mapping[str, Entries], aside: _Aside) -> Manifest:
    """A log without damage with one more round, in which tables grow."""
    last = read_log(folder, manifest.start)[-1]
    if last.former:
        number, content = last.number + 1, Header(manifest.state, last.number + 1, last.last_round, last.end).encode()
    else:
        number, content = last.number, files.content(last.path)[: last.end] if last.end else last.header.encode()
    aside.keep([last.path.name])
    round = last.last_round + 1
    record = Framing.of(manifest.state, number).framed(encode(round, {}, tables), len(content), last.last_round, round)
    _rewrite(segment_path(folder, number), content + record)
    return replace(manifest, forced=(number, len(content) + len(record)))


def _rewrite(path: Path, content: bytes) -> None:
    with files.refusals(path, "write"):
        files.replace(path, content)


def _before(bad: Segment, segments: list[Segment], manifest: Manifest) -> tuple[int, int]:
    """The round that a segment follows on, and the size of the one before."""
    earlier = [s for s in segments if s.number < bad.number]
    return (earlier[-1].last_round, folders.size(earlier[-1].path)) if earlier else (manifest.round, 0)


def _follows(bad: Segment, segments: list[Segment], manifest: Manifest) -> bool:
    """Whether the records of a segment go on where what is before it ends."""
    return bad.former or (bool(bad.records) and bad.records[0].before == _before(bad, segments, manifest)[0])


def _restored(bad: Segment, segments: list[Segment], content: bytes, manifest: Manifest) -> bytes:
    if _follows(bad, segments, manifest):
        return content[: bad.end]
    return Header(manifest.state, bad.number, *_before(bad, segments, manifest)).encode()


def _loss_text(bad: Segment, segments: list[Segment], manifest: Manifest) -> str:
    last = bad.last_round if _follows(bad, segments, manifest) else _before(bad, segments, manifest)[0]
    known = max(s.last_round if s.damage is None else s.damage.last for s in segments if s.number >= bad.number)
    lost = span(last + 1, known) if known > last else f"what was committed after round {last}, if anything was"
    return f"lost: {lost}; the state is at round {last}"
