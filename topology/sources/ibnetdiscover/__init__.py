"""The output of `ibnetdiscover`: one parser, which fills rows, and a printer of rows.

    text ─> parser ─> rows ─┬─> printer (agent)
                            └─> columns ─> the join; devices on demand (generator)

- parser: text in every form that has cables, to rows
- rows: nodes and port lines as arrays
- printer: prints rows in the format of `ibnetdiscover`, without what changes by itself
- cut_sweep: whether the end of an output is missing
- columns: the rows as numpy columns, sorted
- devices: devices built from columns on demand

Imports `topology.model` and `sources.infiniband`. Only `columns` and `devices` need numpy, so a
node can run the others without it.
"""
