"""The devices and the errors of a dump, as the sources of other devices give them."""

from topology.model.facts import ParseResult
from topology.sources.ibnetdiscover.columns import SweepColumns
from topology.sources.ibnetdiscover.devices import SweptDevices
from topology.sources.ibnetdiscover.parser import parse_rows


def parse_ibnetdiscover(raw: bytes, *, source: str = "") -> ParseResult:
    """Return one device per record, sorted by GUID, and an error per bad line."""
    parser = parse_rows(raw, source=source)
    return ParseResult(SweptDevices(SweepColumns.sort(parser.rows)), tuple(parser.errors))
