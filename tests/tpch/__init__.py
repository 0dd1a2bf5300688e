"""TPC-H: its 22 queries, as programs of rules (`programs/tpch`) and as SQL (`sql`), on generated data that change by rounds."""
