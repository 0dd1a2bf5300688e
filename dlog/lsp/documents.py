"""An open document: its text, its names, and what the last analysis said of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import PositionCodec

from dlog.dataclass import dataclass
from dlog.grammar.diagnostics import Diagnostic, one_line, shown_place
from dlog.lsp.analysis import Analysis, analyse
from dlog.lsp.bindings import Bindings, Part
from dlog.lsp.fixes import fixes
from dlog.lsp.names import Occurrence, Role, at_offset, declaration, find_names, is_built_in
from dlog.lsp.places import Places

_SEVERITIES = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}


@dataclass(frozen=True, slots=True)
class Document:
    """A text that an editor has open. Immutable: a change makes another one."""

    uri: str
    text: str
    places: Places
    names: list[Occurrence]
    analysis: Analysis
    codec: PositionCodec

    @classmethod
    def read(cls, uri: str, text: str, codec: PositionCodec, include: Sequence[str], macros: Sequence[str]) -> Document:
        name = to_fs_path(uri) or uri
        return cls(uri, text, Places(text, codec), find_names(text), analyse(text, name, include, macros), codec)

    @classmethod
    def unread(cls, uri: str, text: str, codec: PositionCodec) -> Document:
        """One that is not analysed yet: its names are known."""
        name = to_fs_path(uri) or uri
        return cls(uri, text, Places(text, codec), find_names(text), Analysis(name, (), None, {name: text.split("\n")}), codec)

    def name_at(self, position: types.Position) -> Occurrence | None:
        return at_offset(self.names, self.places.offset(position))

    def references(self, position: types.Position) -> Sequence[Occurrence | Part]:
        """All that is the name at a position; of `a.b.r` what is the one of its names that stands there."""
        used = self.name_at(position)
        if used is None:
            return []
        bindings = self._bindings(used)
        if bindings is None:
            return [o for o in self.names if o.same_name(used)]
        return bindings.group(self.places.offset(position))

    def range_at(self, position: types.Position) -> types.Range | None:
        """The place of the name at a position."""
        offset = self.places.offset(position)
        touching = [o for o in self.references(position) if o.span.start <= offset <= o.span.end]
        return self.places.range(touching[-1].span) if touching else None

    def _bindings(self, used: Occurrence) -> Bindings | None:
        """What names refer to, where there are components."""
        plain = used.role in (Role.VARIABLE, Role.ATTRIBUTE)
        return None if plain or all(o.role is not Role.COMPONENT for o in self.names) else Bindings(self.names)

    def definition(self, position: types.Position) -> types.Location | None:
        """Where a name is declared: here, or in an included file."""
        used = self.name_at(position)
        if used is None:
            return None
        own = next((o for o in self.references(position) if o.declares), None) or declaration(self.names, used)
        if own is not None:
            return types.Location(self.uri, self.places.range(own.span))
        for file, lines in self.analysis.files.items():
            if file != self.analysis.name:
                text = "\n".join(lines)
                found = declaration(find_names(text), used)
                if found is not None:
                    return types.Location(_uri(file), Places(text, self.codec).range(found.span))
        return None

    def refusal(self, position: types.Position) -> str:
        """Why the name at a position cannot be renamed; empty if it can."""
        used = self.name_at(position)
        if used is None:
            return "there is no name here"
        if is_built_in(used):
            return f"`{used.name}` is a word of the language"
        if used.role is Role.VARIABLE:
            return ""
        bindings = self._bindings(used)
        if bindings is None:
            return "" if declaration(self.names, used) else f"`{used.name}` is not declared in this file"
        if bindings.is_endless:
            return "the instances of this program's components have no end"
        group = bindings.group(self.places.offset(position))
        if not any(part.declares for part in group):
            return f"`{used.name}` is not declared in this file"
        unknown = bindings.unknown(group)
        return f"what `{unknown}` refers to is not known here: it may be this name" if unknown else ""

    # ----------------------------------------------------------------------------------------------------------- findings

    def diagnostics(self) -> dict[str, list[types.Diagnostic]]:
        """The findings by the file that they are about, which may be an included one."""
        found: dict[str, list[types.Diagnostic]] = {self.uri: []}
        for finding in self.analysis.findings:
            uri, place = self._place(finding)
            said = "\n".join(map(one_line, (finding.message, *finding.notes)))
            shown = types.Diagnostic(
                place,
                said,
                severity=_SEVERITIES.get(finding.severity, types.DiagnosticSeverity.Error),
                code=finding.code,
                source="dlog",
                related_information=self._related(finding) or None,
            )
            found.setdefault(uri, []).append(shown)
        return found

    def actions(self, wanted: types.Range) -> Iterator[tuple[str, types.Location, str]]:
        """The fixes of the findings in a range: the title, the place and the new text."""
        for finding in self.analysis.findings:
            uri, place = self._place(finding)
            if uri != self.uri or place.end < wanted.start or wanted.end < place.start or finding.source is None:
                continue
            for fix in fixes(finding):
                at = finding.source.locate(fix.span.start)
                where = self.places.range_of(at.line, at.column, fix.span.end - fix.span.start)
                yield fix.title, types.Location(uri, where), fix.replacement

    def _related(self, finding: Diagnostic) -> list[types.DiagnosticRelatedInformation]:
        spots = range(1, len(finding.labels))
        located = ((self._location(finding, at), one_line(finding.labels[at].message)) for at in spots)
        return [types.DiagnosticRelatedInformation(types.Location(uri, place), said) for (uri, place), said in located]

    def _place(self, finding: Diagnostic) -> tuple[str, types.Range]:
        if finding.source is None or not finding.labels:
            return self.uri, self.places.range_of(1, 1, 0)
        return self._location(finding, 0)

    def _location(self, finding: Diagnostic, label: int) -> tuple[str, types.Range]:
        assert finding.source is not None
        start, width = shown_place(finding.source, finding.labels[label])
        if start.file == self.analysis.name:
            return self.uri, self.places.range_of(start.line, start.column, width)
        text = "\n".join(finding.source.files.get(start.file, [""]))
        return _uri(start.file), Places(text, self.codec).range_of(start.line, start.column, width)


def _uri(file: str) -> str:
    return from_fs_path(str(Path(file).resolve())) or file
