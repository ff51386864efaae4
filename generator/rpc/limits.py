"""Limits of one call, of one caller, and of all calls of a server together.

A caller is the name that a token or a certificate proves, or else the address of a connection.
"""

from __future__ import annotations

from typing import Final

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""Size of a message in each direction; longer answers are sent as pages or as a stream."""
MAX_DEADLINE_S: Final = 3600.0
"""A longer one counts as none; gRPC gives a call without a deadline some 300 billion years."""
DEADLINE_ROUNDING_S: Final = 11.0
"""gRPC rounds a deadline of 1,000 to 10,000 s up to 10 s on its way, so that an hour and a
millisecond arrives as more. Source: `Timeout::FromSeconds` in its `timeout_encoding.cc`."""
MAX_SEARCH_S: Final = 10.0
"""The time of all searches of one call together."""
CROWDED_SEARCH_S: Final = 1.0
"""The same for a search that begins while more than half of the slots are taken, so that a slot is
free again soon, whoever takes them."""
MAX_BATCH_SEARCH_S: Final = 60.0
"""For one message of a stream, which may hold a thousand gangs."""
CROWDED_BATCH_SEARCH_S: Final = 10.0
MAX_STREAM_SEARCH_S: Final = 600.0
"""The time of all searches of one stream together."""
NUM_THREADS: Final = 16
"""Calls that are answered at the same time, without streams."""
MAX_CALLER_THREADS: Final = 10
MAX_WAITING: Final = 144
"""Calls that wait for their turn to be answered."""
MAX_CALLER_WAITING: Final = 96
MAX_STREAMS: Final = 128
"""Streams of the toponaut services; each uses a thread."""
MAX_CALLER_STREAMS: Final = 96
MAX_OTHER_STREAMS: Final = 16
"""Streams of health and reflection."""
MAX_CALLER_OTHER_STREAMS: Final = 8
MAX_STREAM_SEARCHES: Final = 4
"""Messages of streams that are planned at the same time."""
NUM_SPARE_THREADS: Final = 32
"""Threads that refuse calls, or give them the place of another one, while all places are taken."""
MAX_CALLS: Final = (
    NUM_THREADS + MAX_WAITING + MAX_STREAMS + MAX_OTHER_STREAMS + 2 * NUM_SPARE_THREADS
)
"""Calls that are served or wait, including streams; gRPC refuses further calls at once."""
MAX_FORWARDED: Final = 12
"""Calls of a follower that wait for the leader, so that threads are left for placement."""
MAX_CALLER_FORWARDED: Final = 8
MAX_UNREAD_BYTES: Final = 128 * 1024 * 1024
"""Size of the answers that clients have not read yet; one caller can take half of them."""
STALL_S: Final = 20.0
"""Time that a client may take to send a request, or to read an answer."""
CROWDED_STALL_S: Final = 8.0
"""The same to send a request while more than half of the slots are taken."""
MAX_CONNECTIONS: Final = 512
HANDSHAKE_S: Final = 10.0
"""From a connection to its first settings; of a TLS handshake too."""
IDLE_S: Final = 30.0
"""After this time without a call, a connection is closed; clients open another one."""
