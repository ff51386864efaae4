"""Reservations: nodes kept for a gang until its pods run there, or until time is up.

`records` are the values, `rules` and `holding` decide, `ledger` carries out; `sqlite` and
`cluster` keep what it decided.
"""
