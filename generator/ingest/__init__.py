"""From reports and files to claims: everything that an observation is made of.

- `inputs`: the inputs of one observation, as one value.
- `sources`: reads them for commands, from files or a cluster.
- `claims`: reports to claims; the sweep of each subnet that counts. Pure.
- `reported_sweep`: a sweep that a node reports, and its claims. Pure.
- `sweep_choice`: which sweep of a subnet counts. Pure.
- `sweep_verdicts`: what speaks against a sweep: other sweeps of its subnet, and hosts. Pure.
- `named_sweepers`: the nodes whose sweeps count, and the subnets that need one. Pure.
- `host_evidence`: a sweep compared with what hosts report about themselves. Pure.
- `sweep_views`: the cables of a sweep as arrays, and how two sweeps differ. Pure.
- `sweep_findings`: findings and doubts about sweeps. Pure.
- `report_scope`: what a report may say, by the name that it was written under. Pure.
- `heard_devices`: how many devices the reports of all hosts may name. Pure.
- `sweep_budget`: parses the sweeps that count, within the memory that all may take.
- `unusable_reports`: findings about reports and sweeps that cannot be used. Pure.
- `sweeps`: the text of a sweep to claims.
- `subnets`: subnets in reports: which are covered by saved sweeps, which refuse a sweep. Pure.
- `dump_formats`: detects and parses saved InfiniBand dumps.
- `ignored_folders`: subfolders with input that is not read.
- `walk_files`: saved snmpwalk files of switches.
- `file_inspection`: format, counts and bad lines of any file.

May import `store`, `objects`, `kube.access` and `topology`. Never `observe`.
"""
