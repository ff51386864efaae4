"""One member of a ring allreduce over TCP, started by mpirun: `ring_member MEETING FLOATS`.

MEETING is a Unix socket, as network namespaces share the file system: a member sends its rank and
its address there, gets the addresses of all ranks, and at the end sends how long the sum took.
"""

import json
import os
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

TIMEOUT_S = 90.0


def address_of(host: str) -> str:
    """Return the address of a host with a name such as node-1-2-3."""
    _, _, leaf, number = host.split("-")
    return f"10.7.{leaf}.{number}"


def main(meeting: str, num_floats: int) -> None:
    """Sum an array over all ranks, and report the seconds."""
    rank, size = (int(os.environ[f"OMPI_COMM_WORLD_{name}"]) for name in ("RANK", "SIZE"))
    server = socket.create_server((address_of(socket.gethostname()), 0))
    server.settimeout(TIMEOUT_S)
    with socket.socket(socket.AF_UNIX) as meet, server, ThreadPoolExecutor(1) as sender:
        meet.settimeout(TIMEOUT_S)
        meet.connect(meeting)
        answers = meet.makefile("r")
        _say(meet, [rank, *server.getsockname()])
        addresses = json.loads(answers.readline())
        # Every server listens already, so that each connects before it accepts.
        following = socket.create_connection(addresses[(rank + 1) % size], TIMEOUT_S)
        previous, _ = server.accept()
        previous.settimeout(TIMEOUT_S)
        with following, previous:
            values = np.full(num_floats, rank + 1, np.float32)
            _say(meet, "connected")
            answers.readline()
            started_s = time.monotonic()
            _sum_over_ring(values, rank, size, (previous, following, sender))
            duration_s = time.monotonic() - started_s
        if not (values == size * (size + 1) / 2).all():
            raise AssertionError("wrong sum")
        _say(meet, duration_s)


def _sum_over_ring(
    values: np.ndarray[tuple[int], np.dtype[np.float32]],
    rank: int,
    size: int,
    ring: tuple[socket.socket, socket.socket, ThreadPoolExecutor],
) -> None:
    """Add up each part on its way around the ring, then send the sums around."""
    previous, following, sender = ring
    parts = np.array_split(values, size)
    for step in range(2 * (size - 1)):
        sent = sender.submit(following.sendall, parts[(rank - step) % size].tobytes())
        part = parts[(rank - step - 1) % size]
        got = np.frombuffer(_receive(previous, part.nbytes), np.float32)
        part[:] = part + got if step < size - 1 else got
        sent.result()


def _receive(source: socket.socket, num_bytes: int) -> bytes:
    got = bytearray()
    while len(got) < num_bytes:
        piece = source.recv(num_bytes - len(got))
        if not piece:
            raise ConnectionError("the previous member of the ring is gone")
        got += piece
    return bytes(got)


def _say(meet: socket.socket, message: object) -> None:
    meet.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
