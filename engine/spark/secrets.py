"""Keys with which the processes of one run recognize each other."""

from __future__ import annotations

import os
from dataclasses import field
from typing import Any

import zmq
from zmq.auth.thread import ThreadAuthenticator

from dlog.dataclass import dataclass
from dlog.engine.spark.pieces import MAX_FRAME_BYTES

ENVELOPE = 256
"""Bytes that encryption adds to a frame, and more."""
DOMAIN = "dlog"
PATIENCE = 10_000
"""Milliseconds in which a connection has to prove that it belongs to the run."""


@dataclass(frozen=True)
class Secrets:
    """The key pairs of those who listen and of those who call. They reach the workers inside Spark's tasks and nobody else, so
    whoever has them belongs to the run. Elliptic-curve encryption and authentication are ZeroMQ's CURVE."""

    listener_public: bytes
    listener_secret: bytes = field(repr=False)
    caller_public: bytes
    caller_secret: bytes = field(repr=False)

    @classmethod
    def new(cls) -> Secrets:
        return cls(*zmq.curve_keypair(), *zmq.curve_keypair())

    def callback(self, domain: str, key: bytes) -> bool:
        """Whether a caller with this public key may talk to us (what ZeroMQ's authenticator asks)."""
        return key == self.caller_public

    def guard(self, context: zmq.Context[Any]) -> ThreadAuthenticator:
        """Refuses strangers on all listening sockets of a context; `stop` ends it."""
        guard = _Guard(context)
        guard.start()
        guard.configure_curve_callback(DOMAIN, self)
        return guard

    def listener(self, context: zmq.Context[Any], kind: int) -> zmq.Socket[Any]:
        """A socket that is to be bound."""
        socket = context.socket(kind)
        socket.curve_server = True
        # Without a guard ZeroMQ would let everybody in who knows the listener's public key; with these two nobody.
        socket.zap_domain = DOMAIN.encode()
        socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)
        socket.curve_publickey, socket.curve_secretkey = self.listener_public, self.listener_secret
        return _open(socket)

    def caller(self, context: zmq.Context[Any], kind: int) -> zmq.Socket[Any]:
        """A socket that is to be connected."""
        socket = context.socket(kind)
        socket.curve_serverkey = self.listener_public
        socket.curve_publickey, socket.curve_secretkey = self.caller_public, self.caller_secret
        return _open(socket)


class _Guard(ThreadAuthenticator):
    """Is at work in the process that has begun it, known by its number, as ZeroMQ knows it. In one that was forked from that
    nobody hears its end, for which it would wait."""

    _process = 0
    _number = staticmethod(os.getpid)
    """Here still when modules are no more, at the end of the interpreter."""

    def start(self) -> None:
        self._process = self._number()
        super().start()

    def stop(self) -> None:
        if self._process == self._number():
            super().stop()


def _open(socket: zmq.Socket[Any]) -> zmq.Socket[Any]:
    """No queue of messages is ever full: workers keep step, so there is one message between two of them, or two. A stranger has
    little time, and a piece of memory."""
    socket.sndhwm = socket.rcvhwm = 0
    socket.linger = 0
    socket.maxmsgsize = MAX_FRAME_BYTES + ENVELOPE
    socket.handshake_ivl = PATIENCE
    return socket
