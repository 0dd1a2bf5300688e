"""The server: requests of the Language Server Protocol, answered from documents.

A change is analysed a moment after it, in a thread: what an editor asks in between is answered from the names of the new text
and the types of the last one that was analysed. The end of what the editor sends is the end of the server, whatever is being
analysed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import BinaryIO, Final, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from dlog.grammar.diagnostics import DlogError
from dlog.grammar.printer import format_source
from dlog.grammar.source import Source
from dlog.grammar.words import RESERVED
from dlog.lsp.background import Background
from dlog.lsp.channel import Channel, remark_briefly
from dlog.lsp.completion import completions
from dlog.lsp.documents import Document
from dlog.lsp.editor import begin, end_with
from dlog.lsp.hover import name_hover, word_hover
from dlog.lsp.names import Role, find_names
from dlog.lsp.places import Places, word_at
from dlog.version import __version__

_QUIET_SECONDS: Final = 0.2
"""How long a text must not have changed before it is analysed."""
_SYMBOLS: Final = {
    Role.RELATION: types.SymbolKind.Function,
    Role.TYPE: types.SymbolKind.Struct,
    Role.FUNCTOR: types.SymbolKind.Operator,
    Role.COMPONENT: types.SymbolKind.Class,
    Role.INSTANCE: types.SymbolKind.Object,
}


class Server(LanguageServer):
    """Has the open documents, and which files' findings each has shown."""

    def __init__(self, include: Sequence[str], macros: Sequence[str]) -> None:
        super().__init__("dlog", __version__)
        self.include, self.macros = include, macros
        self.documents: dict[str, Document] = {}
        self.waiting: dict[str, asyncio.Task[None]] = {}
        self.analyses: Background[Document] = Background()
        self.published_files: dict[str, set[str]] = {}

    def document(self, uri: str) -> Document:
        """The document with its present text."""
        text = self.workspace.get_text_document(uri).source
        known = self.documents.get(uri)
        codec = self.workspace.position_codec
        if known is None:
            known = self.documents[uri] = Document.unread(uri, text, codec)
        elif known.text != text:
            known = replace(known, text=text, places=Places(text, codec), names=find_names(text))
            self.documents[uri] = known
        return known

    def changed(self, uri: str) -> None:
        """Has a text analysed once it is not changed any more."""
        if uri in self.waiting:
            self.waiting[uri].cancel()
        self.waiting[uri] = asyncio.get_running_loop().create_task(self._analyse(uri))

    async def _analyse(self, uri: str) -> None:
        await asyncio.sleep(_QUIET_SECONDS)
        text, codec = self.workspace.get_text_document(uri).source, self.workspace.position_codec
        work = partial(Document.read, uri, text, codec, self.include, self.macros)
        self.analyses.start(uri, work, partial(self._analysed, uri))

    def _analysed(self, uri: str, found: Document) -> None:
        if uri not in self.waiting or self.workspace.get_text_document(uri).source != found.text:
            return  # it was closed, or is about to be analysed again
        self.documents[uri] = found
        self._show(uri, found.diagnostics())

    def _show(self, uri: str, diagnostics: dict[str, list[types.Diagnostic]]) -> None:
        """Shows findings, and takes those back that an earlier text had in other files."""
        for file in self.published_files.get(uri, set()) - diagnostics.keys():
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(file, []))
        for file, found in diagnostics.items():
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(file, found))
        self.published_files[uri] = set(diagnostics)

    def closed(self, uri: str) -> None:
        if uri in self.waiting:
            self.waiting.pop(uri).cancel()
        self.analyses.forget(uri)
        self.documents.pop(uri, None)
        self._show(uri, {})


def make_server(parent: int, include: Sequence[str] = (), macros: Sequence[str] = ()) -> Server:
    """A server with all its answers. `parent` is the process that has started this one; `include` and `macros` are as for
    `dlog check`."""
    server = Server(include, macros)
    _greet(server, parent)
    _follow(server)
    _answer(server)
    _edit(server)
    return server


def serve(parent: int, include: Sequence[str] = (), macros: Sequence[str] = ()) -> None:
    """Serves one editor on standard input and output, until it says goodbye or ends. Raises DlogError for what no editor
    sends."""
    remark_briefly()
    begin()
    make_server(parent, include, macros).start_io(cast(BinaryIO, Channel(sys.stdin.buffer)))


def _greet(server: Server, parent: int) -> None:
    @server.feature(types.INITIALIZE)
    def watch_parent(params: types.InitializeParams) -> None:
        """What the editor sends may not end with it: others that it has started can hold the same pipe."""
        if params.process_id is not None:
            end_with(params.process_id, parent)


def _follow(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        """Others may include what was saved."""
        for uri in list(server.documents):
            server.changed(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.closed(params.text_document.uri)


def _answer(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.document(params.text_document.uri)
        used = document.name_at(params.position)
        if used is not None:
            text = name_hover(used, document.names, document.text, document.analysis)
        else:
            text = word_hover(word_at(document.text, document.places.offset(params.position)).strip("."))
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> types.Location | None:
        return server.document(params.text_document.uri).definition(params.position)

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(params: types.ReferenceParams) -> list[types.Location]:
        document = server.document(params.text_document.uri)
        found = document.references(params.position)
        wanted = [o for o in found if params.context.include_declaration or not o.declares]
        return [types.Location(document.uri, document.places.range(o.span)) for o in wanted]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        document = server.document(params.text_document.uri)
        return [types.DocumentHighlight(document.places.range(o.span)) for o in document.references(params.position)]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        document = server.document(params.text_document.uri)
        declared = [o for o in document.names if o.declares and o.role in _SYMBOLS]
        place = document.places.range
        return [types.DocumentSymbol(o.name, _SYMBOLS[o.role], place(o.statement), place(o.span)) for o in declared]

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", "$", "@"]))
    def complete(params: types.CompletionParams) -> types.CompletionList:
        document = server.document(params.text_document.uri)
        found = completions(document.text, document.places.offset(params.position), document.names)
        return types.CompletionList(is_incomplete=False, items=found)


def _edit(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(params: types.PrepareRenameParams) -> types.Range | None:
        document = server.document(params.text_document.uri)
        return None if document.refusal(params.position) else document.range_at(params.position)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(params: types.RenameParams) -> types.WorkspaceEdit:
        document = server.document(params.text_document.uri)
        if problem := document.refusal(params.position) or naming_problem(params.new_name):
            raise JsonRpcInvalidParams(problem)
        edits = [types.TextEdit(document.places.range(o.span), params.new_name) for o in document.references(params.position)]
        return types.WorkspaceEdit(changes={document.uri: edits})

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def format_document(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        document = server.document(params.text_document.uri)
        try:
            text = format_source(Source(document.text.replace("\r\n", "\n"), document.analysis.name))
        except DlogError:
            return None  # its mistakes are shown already
        return [types.TextEdit(document.places.whole(), text)] if text != document.text else []

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION)
    def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.document(params.text_document.uri)
        kind = types.CodeActionKind.QuickFix
        return [
            types.CodeAction(title, kind, edit=types.WorkspaceEdit({at.uri: [types.TextEdit(at.range, text)]}))
            for title, at, text in document.actions(params.range)
        ]


def naming_problem(name: str) -> str:
    """Why a name cannot be given to anything; empty if it can."""
    if name in RESERVED:
        return f"`{name}` is a reserved word"
    return "" if name.replace("?", "_").isidentifier() and name.isascii() else f"`{name}` is not a name"
