"""What `dlog lsp` does with an editor that ends, or sends what cannot be understood."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from dlog.lsp.background import Background
from tests.dlog.command import ROOT

START = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[1:] = ['lsp']; from dlog.__main__ import main; "
ENDLESS = """
import threading
from dlog.lsp.documents import Document
def read(*args):
    print("begun", file=sys.stderr, flush=True)
    threading.Event().wait()
Document.read = read
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"processId": None, "rootUri": None, "capabilities": {}},
}
PATIENCE = 120


def message(content: dict[str, Any]) -> bytes:
    return framed(json.dumps(content).encode())


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def opening(text: str, uri: str = "file:///nowhere/a.dl") -> bytes:
    document = {"uri": uri, "languageId": "souffle", "version": 1, "text": text}
    return message({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": document}})


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A server that has been greeted; a parameter is what it executes first."""
    command = [sys.executable, "-P", "-c", f"{START}{getattr(request, 'param', '')}\nmain()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(message(INITIALIZE))
        process.stdin.flush()
        yield process
        process.kill()


def talk(server: subprocess.Popen[bytes], *sent: bytes) -> tuple[int, str, list[str]]:
    """The exit code, what was answered and the lines on standard error."""
    out, err = server.communicate(b"".join(sent), timeout=PATIENCE)
    return server.returncode, out.decode(), err.decode().splitlines()


@pytest.mark.parametrize("server", [ENDLESS], indirect=True)
def test_an_analysis_without_end_does_not_outlive_the_editor(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None and server.stderr is not None
    server.stdin.write(opening(".decl a(x: number)\n"))
    server.stdin.flush()
    assert server.stderr.readline() == b"begun\n"
    assert talk(server)[::2] == (0, [])


@pytest.mark.parametrize("length", [b"1000000000000", b"9" * 4000])
def test_a_message_of_no_editor_ends_the_server_with_a_diagnostic(server: subprocess.Popen[bytes], length: bytes) -> None:
    code, _, err = talk(server, b"Content-Length: ", length, b"\r\n\r\n{}")
    assert (code, err[0]) == (1, "error: cannot read what the editor sends: a message has more than 268,435,456 bytes")


def test_a_header_without_end_ends_the_server_with_a_diagnostic(server: subprocess.Popen[bytes]) -> None:
    code, _, err = talk(server, b"X: " + b"a" * 50_000)
    assert (code, err[0]) == (1, "error: cannot read what the editor sends: a line of the header has more than 4,096 bytes")


def test_what_cannot_be_understood_is_remarked_in_a_line_and_the_server_goes_on(server: subprocess.Popen[bytes]) -> None:
    wrong = [
        b"hello",
        b"[" * 200_000,
        b"[]",
        b"\xff\xff",
        b'{"jsonrpc": "2.0", "method": "\\u001b[2J\\n", "id": [], "params": 1}',
    ]
    asked = {"jsonrpc": "2.0", "id": 7, "method": "shutdown"}
    code, out, err = talk(server, *map(framed, wrong), message(asked))
    assert code == 0 and '"id": 7' in out
    assert len(err) >= len(wrong) - 1
    assert all(line.startswith("dlog lsp: ") and len(line) < 300 and line.isprintable() for line in err), err


def test_of_works_that_wait_only_the_newest_is_done() -> None:
    async def outcome() -> tuple[list[str], list[str]]:
        begun, done, release, last = list[str](), list[str](), Event(), asyncio.Event()
        background: Background[str] = Background()

        def work(name: str) -> str:
            begun.append(name)
            release.wait(PATIENCE)
            return name

        def finish(name: str) -> None:
            done.append(name)
            if len(done) == 2:
                last.set()

        for key, name in (("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1")):
            background.start(key, lambda name=name: work(name), finish)  # type: ignore[misc]
        background.start("c", lambda: work("c1"), finish)
        background.start("c", lambda: work("c2"), finish)
        background.forget("c")
        release.set()
        await asyncio.wait_for(last.wait(), PATIENCE)
        while len(done) < 3:
            await asyncio.sleep(0.01)
        return sorted(begun), sorted(done)

    assert asyncio.run(outcome()) == (["a1", "a3", "b1", "c1"], ["a3", "b1", "c1"])
