"""Reservations: nodes kept for a gang until its pods run there, or until time is up.

`records` are the values, `rules`, `holding` and `upkeep` decide, `ledger` carries out; `sqlite`
and `cluster` are the `stores` that keep what it decided.
"""
