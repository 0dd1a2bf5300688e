"""What tests of `dlog watch` share: a stream of changes, what comes of it, and values of every kind."""

from __future__ import annotations

from collections.abc import Callable

from tests.dlog.command import Finished

RunWatch = Callable[..., Finished]

STREAM = "1,edge,+1,1,2\n1,edge,+1,2,3\n2,edge,-1,2,3\n2,edge,+1,2,4\n5,edge,+1,4,1\n"
CHANGES = """\
1,path,+1,1,2
1,path,+1,1,3
1,path,+1,2,3
2,path,-1,1,3
2,path,-1,2,3
2,path,+1,1,4
2,path,+1,2,4
5,path,+1,1,1
5,path,+1,2,1
5,path,+1,2,2
5,path,+1,4,1
5,path,+1,4,2
5,path,+1,4,4
"""
KINDS = """.type Pair = [left: number, right: Pair]
.decl all(n: number, u: unsigned, f: float, s: symbol, p: Pair)
.decl copy(n: number, u: unsigned, f: float, s: symbol, p: Pair)
.decl flag()
.decl raised()
.output copy, raised
copy(n, u, f, s, p) :- all(n, u, f, s, p).
raised() :- flag().
"""
