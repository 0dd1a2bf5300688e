"""An editor's conversation with `dlog lsp`, in a process of its own."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as t
from pygls.lsp.client import LanguageClient

from tests.dlog.command import ROOT

TEXT = """\
// Who knows whom.
.decl knows(who: symbol, whom: symbol)
.decl reach(a: symbol, b: symbol)
reach(a, b) :- knows(a, b).
reach(a, c) :- reach(a, b), knows(b, c).
.output  reach
.input knows
"""


SERVER = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[1:] = ['lsp']; from dlog.__main__ import main; main()"


class Editor:
    """A client that has one document open, and hears what the server shows."""

    def __init__(self, client: LanguageClient, path: Path) -> None:
        self.client, self.path = client, path
        self.uri = path.as_uri()
        self.shown: asyncio.Queue[t.PublishDiagnosticsParams] = asyncio.Queue()

        @client.feature(t.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def hear(params: t.PublishDiagnosticsParams) -> None:
            self.shown.put_nowait(params)

    async def open(self, text: str) -> list[t.Diagnostic]:
        """Opens the document and answers what is found in it."""
        document = t.TextDocumentItem(self.uri, "souffle", 1, text)
        self.client.text_document_did_open(t.DidOpenTextDocumentParams(document))
        return await self.findings()

    async def findings(self) -> list[t.Diagnostic]:
        while True:
            shown = await asyncio.wait_for(self.shown.get(), 60)
            if shown.uri == self.uri:
                return list(shown.diagnostics)

    @property
    def document(self) -> t.TextDocumentIdentifier:
        return t.TextDocumentIdentifier(self.uri)


def edit(tmp_path: Path, talk: Callable[[Editor], Awaitable[Any]]) -> Any:
    """The outcome of a conversation with a server that begins with it and ends after it."""

    async def conversation() -> Any:
        client = LanguageClient("test", "1")
        editor = Editor(client, tmp_path / "program.dl")
        await client.start_io(sys.executable, "-P", "-c", SERVER)
        await client.initialize_async(t.InitializeParams(capabilities=t.ClientCapabilities(), root_uri=tmp_path.as_uri()))
        client.initialized(t.InitializedParams())
        try:
            return await talk(editor)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()

    return asyncio.run(conversation())


def test_mistakes_show_their_places_and_are_mended(tmp_path: Path) -> None:
    async def talk(editor: Editor) -> tuple[list[t.Diagnostic], list[t.CodeAction], list[t.Diagnostic]]:
        found = await editor.open(TEXT.replace("knows(b, c)", "konws(b, c)"))
        context = t.CodeActionContext(found)
        actions = await editor.client.text_document_code_action_async(
            t.CodeActionParams(editor.document, found[0].range, context)
        )
        change = t.TextDocumentContentChangeWholeDocument(TEXT)
        version = t.VersionedTextDocumentIdentifier(2, editor.uri)
        editor.client.text_document_did_change(t.DidChangeTextDocumentParams(version, [change]))
        return found, list(actions or ()), await editor.findings()  # type: ignore[arg-type]

    found, actions, later = edit(tmp_path, talk)
    assert [(d.code, d.range.start.line, d.range.start.character) for d in found] == [("unknown-relation", 4, 28)]
    assert found[0].message == "unknown relation `konws`\ndid you mean `knows`?"
    (action,) = actions
    assert action.title == "replace by `knows`"
    ((replaced,),) = action.edit.changes.values()
    assert (replaced.new_text, replaced.range.start.character, replaced.range.end.character) == ("knows", 28, 33)
    assert later == []


def test_questions_about_names(tmp_path: Path) -> None:
    async def talk(editor: Editor) -> dict[str, Any]:
        await editor.open(TEXT)
        client, document = editor.client, editor.document
        knows, variable = t.Position(3, 17), t.Position(4, 24)
        include = t.ReferenceContext(include_declaration=True)
        return {
            "hover": await client.text_document_hover_async(t.HoverParams(document, knows)),
            "kind": await client.text_document_hover_async(t.HoverParams(document, variable)),
            "definition": await client.text_document_definition_async(t.DefinitionParams(document, knows)),
            "references": await client.text_document_references_async(t.ReferenceParams(include, document, knows)),
            "rename": await client.text_document_rename_async(t.RenameParams(document, variable, "middle")),
            "symbols": await client.text_document_document_symbol_async(t.DocumentSymbolParams(document)),
            "complete": await client.text_document_completion_async(t.CompletionParams(document, t.Position(4, 30))),
            "format": await client.text_document_formatting_async(
                t.DocumentFormattingParams(document, t.FormattingOptions(4, True))
            ),
        }

    answers = edit(tmp_path, talk)
    assert answers["hover"].contents.value == ("```souffle\n.decl knows(who: symbol, whom: symbol)\n```\nWho knows whom.")
    assert answers["kind"].contents.value == "```souffle\nb: symbol\n```"
    assert answers["definition"].range == t.Range(t.Position(1, 6), t.Position(1, 11))
    assert [(r.range.start.line, r.range.start.character) for r in answers["references"]] == [(1, 6), (3, 15), (4, 28), (6, 7)]
    ((*edits,),) = answers["rename"].changes.values()
    assert [(e.range.start.line, e.range.start.character, e.new_text) for e in edits] == [(4, 24, "middle"), (4, 34, "middle")]
    assert [s.name for s in answers["symbols"]] == ["knows", "reach"]
    assert [i.label for i in answers["complete"].items] == ["knows"]
    assert [e.new_text for e in answers["format"]] == [TEXT.replace("  reach", " reach")]


@pytest.mark.slow
@pytest.mark.parametrize(("line", "character", "name", "said"), [
    (3, 17, "count", "`count` is a reserved word"),
    (3, 17, "two words", "`two words` is not a name"),
    (1, 20, "text", "`symbol` is a word of the language"),
    (5, 2, "x", "there is no name here"),
])  # fmt: skip
def test_refused_names(tmp_path: Path, line: int, character: int, name: str, said: str) -> None:
    async def talk(editor: Editor) -> str:
        await editor.open(TEXT)
        with pytest.raises(Exception) as refused:
            await editor.client.text_document_rename_async(t.RenameParams(editor.document, t.Position(line, character), name))
        return str(refused.value)

    assert said in edit(tmp_path, talk)


COMPONENTS = """\
.comp Base { .decl r(x: number)
  r(1).
}
.comp Top : Base { .decl s(x: number)
  s(x) :- r(x).
}
.init top = Top
.decl t(x: number)
t(x) :- top.r(x), top.s(x).
.output t
"""


def test_names_of_components_are_renamed_with_what_inherits_them(tmp_path: Path) -> None:
    async def talk(editor: Editor) -> Any:
        await editor.open(COMPONENTS)
        at = t.Position(8, 12)
        place = await editor.client.text_document_prepare_rename_async(t.PrepareRenameParams(editor.document, at))
        relation = await editor.client.text_document_rename_async(t.RenameParams(editor.document, at, "red"))
        instance = await editor.client.text_document_rename_async(t.RenameParams(editor.document, t.Position(8, 9), "own"))
        return place, relation, instance

    place, relation, instance = edit(tmp_path, talk)
    assert place == t.Range(t.Position(8, 12), t.Position(8, 13))
    for changes, expected in ((relation, [(0, 19), (1, 2), (4, 10), (8, 12)]), (instance, [(6, 6), (8, 8), (8, 18)])):
        ((*edits,),) = changes.changes.values()
        assert [(e.range.start.line, e.range.start.character) for e in edits] == expected


def test_included_files_have_their_own_findings_and_declarations(tmp_path: Path) -> None:
    (tmp_path / "types.dl").write_text(".type City <: symbol\n.decl near(a: City, b: City)\n")

    async def talk(editor: Editor) -> tuple[list[t.Diagnostic], Any]:
        found = await editor.open('#include "types.dl"\n.decl p(a: City)\np(a) :- near(a, _).\n.output p\n')
        params = t.DefinitionParams(editor.document, t.Position(2, 9))
        return found, await editor.client.text_document_definition_async(params)

    found, definition = edit(tmp_path, talk)
    assert definition.uri == (tmp_path / "types.dl").as_uri()
    assert definition.range.start == t.Position(1, 6)
    assert {d.severity for d in found} <= {t.DiagnosticSeverity.Warning}


def test_characters_are_counted_as_the_editor_counts_them(tmp_path: Path) -> None:
    async def talk(editor: Editor) -> list[t.Diagnostic]:
        return await editor.open('.decl p(x: symbol)\np("😀"), p(y).\n.output p\n')

    found = edit(tmp_path, talk)
    assert found[0].range.start.line == 1
    assert found[0].range.start.character >= 7
