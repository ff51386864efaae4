"""What one call, and all calls together, may take of a server."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""Either way; what is longer comes by pages or as a stream."""
MAX_DEADLINE_S: Final = 3600.0
"""What is longer is no deadline; gRPC gives one of some 300 billion years to a call without."""
NUM_THREADS: Final = 16
MAX_STREAMS: Final = 128
"""Of our own services; each has a thread."""
MAX_OTHER_STREAMS: Final = 16
"""Of health and reflection."""
MAX_CALLS: Final = 64 + MAX_STREAMS + MAX_OTHER_STREAMS
"""That are served or wait, streams among them; gRPC turns further ones away at once."""
MAX_UNREAD_BYTES: Final = 128 * 1024 * 1024
"""Of answers that their callers have not taken yet."""
STALL_S: Final = 20.0
"""That a caller may take to send a request, or to take an answer."""
