"""From reports and files to claims: everything that an observation is made of.

- `inputs`: the inputs of one observation, as one value.
- `sources`: reads them for commands, from files or a cluster.
- `claims`: reports to claims; the sweep of each subnet that counts. Pure.
- `sweep_choice`: which sweep of a subnet counts, and the problems and findings about it. Pure.
- `named_sweepers`: the nodes whose sweeps count. Pure.
- `host_evidence`: a sweep compared with what hosts report about themselves. Pure.
- `sweep_views`: the cables of a sweep as arrays, and how two sweeps differ. Pure.
- `report_findings`: findings and doubts about sweeps and reports. Pure.
- `report_scope`: what a report may say, and how many devices all may name. Pure.
- `sweeps`: the text of reported sweeps to claims, within the memory that all may take.
- `captures`: what people saved: lldpcli captures, snmpwalk files, InfiniBand dumps of any format.
- `subnets`: subnets in reports: which need a sweep, are covered by saved ones, or refuse one. Pure.
- `file_inspection`: format, counts and bad lines of any file.

May import `store`, `objects`, `kube.access` and `topology`; `file_inspection` also imports the
parsers of HyperNodes and requests. Never `observe`.
"""
