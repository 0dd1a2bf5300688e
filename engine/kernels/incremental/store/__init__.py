"""Rows and when they are present: collections with their histories, the tables that find a row (a base loaded at once, direct,
open), indexes by key columns with their groups. All tables grow by instalments (`homes`)."""
