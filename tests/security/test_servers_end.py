"""`dlog lsp` ends with its editor, whatever that has left open, ignored or blocked, and leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.ended import Place, until


def test_a_server_ends_with_its_editor_though_others_hold_its_standard_input(place: Place) -> None:
    """And leaves no cache behind, where that is a temporary folder of its own."""
    (place.folder / "home").mkdir()
    (place.folder / "home").chmod(0o777)
    (place.folder / "tmp" / f"dlog-{os.getuid()}").symlink_to(place.folder / "home")
    editor = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    server = place.dlog("lsp", HOME=str(place.folder / "home"), XDG_CACHE_HOME="", DLOG_CACHE="")
    assert server.stdin is not None and editor.stdin is not None
    opened = {"uri": "file:///a.dl", "languageId": "dlog", "version": 1, "text": ".decl a(x: number)\n"}
    for message in (
        {"id": 1, "method": "initialize", "params": {"processId": editor.pid, "rootUri": None, "capabilities": {}}},
        {"method": "textDocument/didOpen", "params": {"textDocument": opened}},
    ):
        text = json.dumps({"jsonrpc": "2.0", **message})
        server.stdin.write(f"Content-Length: {len(text)}\r\n\r\n{text}")
    server.stdin.flush()
    assert server.stdout is not None and server.stdout.readline().startswith("Content-")
    until(lambda: len(place.left()) == 2)
    assert server.poll() is None
    editor.kill()
    editor.communicate()
    assert server.wait(30) == 0
    assert place.left() == [str(place.folder / "tmp" / f"dlog-{os.getuid()}")]


BUSY = """
import re, sys
from dlog.lsp import editor
editor.WORKING = 0.5
editor.end_with(int(sys.argv[1]), 0)
re.match("(a|a)*b", "a" * 60)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such timers")
def test_a_server_ends_though_the_interpreter_runs_no_thread(tmp_path: Path) -> None:
    """A search with `re` lets none run; this one takes longer than anybody has."""
    editor = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        server = [sys.executable, "-c", BUSY, str(editor.pid)]
        assert subprocess.run(server, cwd=Path(__file__).parents[2], timeout=60).returncode == -signal.SIGPROF
    finally:
        editor.communicate()


SPOILT = """
import os, resource, signal, subprocess, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for _ in range(1100):
    os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)
signal.signal(signal.SIGPROF, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="says what is done with signals")
def test_a_server_ends_with_its_editor_whatever_it_was_given(place: Place) -> None:
    """Open files, so that the next have numbers that `select` does not take; signals that are ignored and blocked."""
    editor = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    command = [sys.executable, "-c", SPOILT, sys.executable, "-m", "dlog", "lsp"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    server = subprocess.Popen(command, cwd=Path(__file__).parents[2], text=True, **pipes)
    try:
        assert server.stdin is not None and server.stdout is not None
        begun = {"id": 1, "method": "initialize", "params": {"processId": editor.pid, "rootUri": None, "capabilities": {}}}
        text = json.dumps({"jsonrpc": "2.0", **begun})
        server.stdin.write(f"Content-Length: {len(text)}\r\n\r\n{text}")
        server.stdin.flush()
        assert server.stdout.readline().startswith("Content-")
        about = dict(line.split(":\t") for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if ":\t" in line)
        assert not (int(about["SigIgn"], 16) | int(about["SigBlk"], 16)) >> signal.SIGPROF - 1 & 1
        editor.kill()
        editor.communicate()
        assert server.wait(30) == 0
    finally:
        editor.kill()
        editor.communicate()
        server.kill()
        server.communicate()


LATE = """
import json, os, subprocess, sys, time
server = subprocess.Popen(sys.argv[2:], stdin=int(sys.argv[1]), stdout=subprocess.DEVNULL)
print(os.getpid(), server.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="says who has started a process")
def test_a_server_ends_with_an_editor_that_has_ended_before_it_was_greeted(place: Place) -> None:
    begin, end = os.pipe()  # which this process holds open
    command = [sys.executable, "-c", LATE, str(begin), sys.executable, "-m", "dlog", "lsp"]
    editor = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=[begin], cwd=Path(__file__).parents[2])
    try:
        assert editor.stdout is not None
        own, started = map(int, editor.stdout.readline().split())
        until(lambda: "_asyncio" in Path(f"/proc/{started}/maps").read_text())
        editor.kill()
        editor.communicate()
        begun = {"id": 1, "method": "initialize", "params": {"processId": own, "rootUri": None, "capabilities": {}}}
        text = json.dumps({"jsonrpc": "2.0", **begun})
        os.write(end, f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
        until(lambda: not Path(f"/proc/{started}").exists(), 20)
    finally:
        os.close(begin)
        os.close(end)
