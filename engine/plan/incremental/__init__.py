"""A stratum maintained over rounds: a path for each part of a body that can change, read at alt or neu times.

Strata of one shape are planned once (`shapes`, `templates`, `repeated`, `renaming`); recursion through count and sum becomes
rules with weights (`thresholds`, `threshold_rules`, `weights`); `layers` cuts off what must be recomputed.
"""
