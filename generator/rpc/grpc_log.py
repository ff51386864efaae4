"""What gRPC itself logs of messages that it cannot read: a line each, not its traceback.

Anybody who reaches the port can send octets that are no message; the call fails with INTERNAL,
and the caller is told. A traceback through the library would read like a defect of ours.
"""

from __future__ import annotations

import logging
from typing import Final

LOGGER_NAME: Final = "grpc._common"


def _without_traceback(record: logging.LogRecord) -> bool:
    record.exc_info = record.exc_text = None
    record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
    return True


def filter_parse_errors() -> None:
    """Have unreadable messages logged as one warning; doing it twice changes nothing."""
    logging.getLogger(LOGGER_NAME).addFilter(_without_traceback)
