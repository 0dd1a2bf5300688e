"""Components: the items of a component take the place of each `.init`, with names of their own, before any name is resolved.

    .comp C<T> { .decl r(x: T)  r(x) :- s(x). }
    .init c = C<number>             ->   .decl c.r(x: number)  c.r(x) :- s(x).

The stages behind know nothing of components: the syntax tree they get has no `.comp`, `.init` and `.override`. `declarations`
has the components as written and `checks` their mistakes; `instances` says which names each instance has, `renaming` writes
them into its items, and `written_names` takes them out of diagnostics again.
"""

from dlog.engine.compile.components.expand import Expansion as Expansion
from dlog.engine.compile.components.expand import expand as expand
