"""The history of a fabric: the trees and the findings of the past, bounded in time and size.

- tree_changes: what differs between two trees. Pure
- findings: what identifies a finding, its JSON, and which are new, gone and lasting. Pure
- retention: which generations are kept. Pure
- history_file: the SQLite file, read and written
- backup: the part of a history that fits into one object of a cluster
- recorder: writes what the rounds of a server saw

Imports `generator.store` and `topology`.
"""
