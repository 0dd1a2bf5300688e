"""Components: each `.init` becomes the items of its component, with names of their own, before any name is resolved.

What comes in is a syntax tree, what goes out is one without `.comp`, `.init` and `.override`: the stages behind know nothing of
components. A program without any passes as it is.
"""

from dlog.engine.compile.components.instantiate import instantiate as instantiate
