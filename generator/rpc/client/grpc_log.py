"""Logs a message that gRPC cannot read as one line, without a traceback.

Any client that reaches the port can send a malformed message; the call fails with INTERNAL,
and the client gets the error. A traceback through gRPC would look like a defect of this program.
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
    """Log each unreadable message as one warning; a second call changes nothing."""
    logging.getLogger(LOGGER_NAME).addFilter(_without_traceback)
