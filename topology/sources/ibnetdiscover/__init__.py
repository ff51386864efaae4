"""The output of `ibnetdiscover`: two parsers with one result, and a printer.

- parser: the entry point, and the parser in plain Python, line by line
- array_parser: the parser in numpy, for a large fabric
- byte_words: finds words and numbers in an array of bytes, for `array_parser`
- chunks: parses a large output in chunks that end between two nodes
- sweep_stream: parses the sweep of a report piece by piece, within limits
- sweep_load: what a sweep holds, the most that any fabric has, and cables in one record only
- columns: the columns that both parsers fill, one row per port, and devices built from them
- devices: builds devices and ports of records
- cut_sweep: whether the end of an output is missing
- printer: prints devices in the format of `ibnetdiscover`

Imports `topology.model` and `sources.infiniband`. Only `byte_words`, `array_parser`, `chunks`,
`columns`, `sweep_stream` and `sweep_load` need numpy, so a node can run the others without it.
"""
