"""From reports and files to claims: everything that an observation is made of.

- `inputs`: the inputs of one observation, as one value.
- `sources`: reads them for commands, from files or a cluster.
- `claims`: reports to claims; the newest complete sweep of each subnet. Pure.
- `report_scope`: what a report may say, by the name that it was written under. Pure.
- `sweeps`: the text of a sweep to claims.
- `subnets`: which subnets need a sweep, which are covered, which refuse it. Pure.
- `dump_formats`: detects and parses saved InfiniBand dumps.
- `walk_files`: saved snmpwalk files of switches.
- `file_inspection`: format, counts and bad lines of any file.

May import `store`, `objects`, `kube.access` and `topology`. Never `observe`.
"""
