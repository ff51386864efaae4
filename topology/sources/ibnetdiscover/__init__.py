"""The output of `ibnetdiscover`: two parsers with one result, and a printer.

- parser: the entry point; picks a parser and returns the devices
- line_parser: the parser in plain Python, line by line
- array_parser: the parser in numpy, for a large fabric
- byte_words: finds words and numbers in an array of bytes, for `array_parser`
- chunks: parses a large output in chunks that end between two nodes
- sweep_stream: parses the sweep of a report piece by piece, within limits
- sweep_load: what a sweep holds, and the most that any fabric has
- columns: the columns that both parsers fill, one row per port
- devices: builds the devices and ports of these columns
- lazy_devices: builds the devices when they are first read
- cut_sweep: whether the end of an output is missing
- one_ended_cables, one_ended_rows: cables in one record only, of devices and of columns
- printer: prints devices in the format of `ibnetdiscover`

Imports `topology.model` and `sources.infiniband`. Only `byte_words`, `array_parser`, `chunks`,
`columns`, `one_ended_rows`, `sweep_stream` and `sweep_load` need numpy, so a node can run the
others without it.
"""
