"""Cabling plans, in every format that sites keep them in.

- formats: detects the format of a plan, then checks its cables; reads the formats without a table
- csv_table: a table of four columns, and the cable list of NetBox as CSV

Imports `topology.model` and `sources.unsupported_formats`.
"""
