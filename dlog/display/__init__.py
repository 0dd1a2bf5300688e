"""How results, figures and progress look to people: tables, previews, numbers with units.

Knows nothing of how anything is computed: it is given rows and figures. Everything that prints may use it.
"""
