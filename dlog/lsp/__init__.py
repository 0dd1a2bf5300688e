"""`dlog lsp`: what editors ask about programs, by the Language Server Protocol.

    places       offsets of a text <-> lines and characters as the editor counts them
    names        which name stands where, and what it names: by tokens alone, so that a text may be unfinished
    analysis     the mistakes and warnings of a text, and the types of what is right
    hover, completion, fixes     answers made of these
    server       the protocol (pygls); nothing else knows it

A document is read as it is in the editor; what it includes, from the disk. Nothing is ever run.
"""
