"""One evaluation: stratum after stratum, each planned with the actual sizes of what it reads, then run to its fixed point."""
