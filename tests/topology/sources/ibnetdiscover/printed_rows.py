"""The text that an agent publishes of a sweep."""

from topology.sources.ibnetdiscover.parser import RowParser
from topology.sources.ibnetdiscover.printer import print_rows


def printed(raw: bytes) -> bytes:
    parser = RowParser()
    parser.read(raw)
    return print_rows(parser.rows).encode()
