"""Text to AST: the Souffle dialect's grammar, syntax tree, diagnostics and printer. Knows nothing of evaluation."""

if __name__ == "grammar":
    raise ImportError("import dlog.grammar, not grammar: a second copy would have its own classes")
