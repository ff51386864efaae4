"""Limits of one call and of all calls of a server together."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""In each direction; longer answers are sent as pages or as a stream."""
MAX_DEADLINE_S: Final = 3600.0
"""A longer one counts as none; gRPC gives a call without a deadline some 300 billion years."""
NUM_THREADS: Final = 16
MAX_STREAMS: Final = 128
"""Streams of the toponaut services; each uses a thread."""
MAX_OTHER_STREAMS: Final = 16
"""Streams of health and reflection."""
MAX_CALLS: Final = 64 + MAX_STREAMS + MAX_OTHER_STREAMS
"""Calls that are served or wait, including streams; gRPC refuses further calls at once."""
MAX_FORWARDED: Final = 8
"""Calls of a follower that wait for the leader, so that threads are left for placement."""
MAX_UNREAD_BYTES: Final = 128 * 1024 * 1024
"""Of answers that clients have not read yet."""
STALL_S: Final = 20.0
"""Time that a client may take to send a request, or to read an answer."""
