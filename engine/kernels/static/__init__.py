"""One evaluation: columns, sets over them, indexes, keyed relations, union-find, and the last join of a path as one loop."""
