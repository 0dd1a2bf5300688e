"""Another plan, or other rules, in the place of those before, between two commits.

`replanning` where the `planner_statistics` have left their range, `rebuilding` where a commit brings many times the rows that
there are, `program_change` where rules come and go; `state_reuse` is what a new dataflow takes over. Rows stay.
"""
