"""A socket that listens: which connection ends when there are too many."""

from __future__ import annotations

import logging
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from runtime import listener as listener_module
from runtime.listener import BoundedListener, find_peer, open_listener, raise_descriptor_limit
from runtime.values import Address

SOON_S = 30.0
LIMIT = 4
LOCAL = Address("127.0.0.1", 0)


@pytest.mark.parametrize(
    ("host", "port", "peer"),
    [
        pytest.param("10.0.0.1", 5, "10.0.0.1", id="an address"),
        pytest.param("::ffff:10.0.0.1", 5, "10.0.0.1", id="an address of IPv4 in one of IPv6"),
        pytest.param("2001:db8:1:2:3:4:5:6", 5, "2001:db8:1:2::/64", id="an address of IPv6"),
        pytest.param("2001:db8:1:2:ffff::1", 5, "2001:db8:1:2::/64", id="another of its host"),
        pytest.param("fe80::1%eth0", 5, "fe80::/64", id="an address of a link"),
        pytest.param("127.0.0.1", 5, "127.0.0.1:5", id="a program of this machine"),
        pytest.param("::1", 5, "[::1]:5", id="a program of this machine over IPv6"),
        pytest.param("::ffff:127.0.0.1", 5, "127.0.0.1:5", id="a program over both"),
        pytest.param("/run/socket", 0, "/run/socket", id="no address"),
    ],
)
def test_a_peer_is(host: str, port: int, peer: str) -> None:
    assert find_peer(host, port) == peer


class Port:
    """A listener, the connections that it accepted, and the clients at the other ends."""

    def __init__(self, stack: ExitStack) -> None:
        self.listener: BoundedListener = stack.enter_context(open_listener(LOCAL, LIMIT))
        self.accepted: list[socket.socket] = []
        self._stack = stack

    def connect(self, source: str = "127.0.0.2") -> socket.socket:
        """Return a client whose connection was accepted."""
        address = self.listener.getsockname()[:2]
        client = socket.create_connection(address, SOON_S, source_address=(source, 0))
        self._stack.enter_context(client)
        accepted, _ = self.listener.accept()
        self.accepted.append(self._stack.enter_context(accepted))
        return client


def is_open(client: socket.socket) -> bool:
    client.settimeout(0)
    with suppress(BlockingIOError):
        return bool(client.recv(1))
    return True


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[Port]:
    """A port at which each address is a peer, as it is for other machines."""
    monkeypatch.setattr(listener_module, "find_peer", lambda host, _port: host)
    with ExitStack() as stack:
        yield Port(stack)


def test_a_peer_with_many_connections_ends_its_own_oldest(port: Port) -> None:
    honest = [port.connect(f"127.0.0.{number}") for number in (3, 4)]
    greedy = [port.connect() for _ in range(4)]
    honest.append(port.connect("127.0.0.5"))
    assert all(map(is_open, honest))
    assert [is_open(client) for client in greedy] == [False, False, False, True]


def test_a_closed_connection_counts_no_longer(port: Port) -> None:
    first = port.connect()
    for _ in range(3 * LIMIT):
        port.connect()
        port.accepted[-1].close()
    assert is_open(first)


def test_connections_that_their_owner_keeps_open_are_bounded_too(port: Port) -> None:
    for _ in range(2 * LIMIT):
        port.connect()
    with pytest.raises(ConnectionAbortedError):
        port.connect()


def test_a_connection_waits_while_those_that_were_ended_are_still_there(port: Port) -> None:
    for _ in range(2 * LIMIT):
        port.connect()
    with ExitStack() as stack:
        address = port.listener.getsockname()[:2]
        waiting = stack.enter_context(socket.create_connection(address, SOON_S))
        waiting.sendall(b"hello")
        with pytest.raises(ConnectionAbortedError):
            port.listener.accept()
        port.accepted[0].close()
        accepted = stack.enter_context(port.listener.accept()[0])
        accepted.settimeout(SOON_S)
        assert accepted.recv(5) == b"hello"


def test_a_full_port_is_logged_once(port: Port, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(3 * LIMIT):
            port.connect()
            if len(port.accepted) > LIMIT:
                port.accepted[-LIMIT - 1].close()
        assert [record.message for record in caplog.records] == ["full port appeared"]
        for accepted in port.accepted:
            accepted.close()
        port.connect()
    assert [record.message for record in caplog.records][1:] == ["full port gone"]


def test_without_a_free_descriptor_it_ends_a_connection_and_goes_on(
    port: Port, caplog: pytest.LogCaptureFixture
) -> None:
    first = port.connect()
    address = port.listener.getsockname()[:2]
    with ExitStack() as stack:
        waiting = stack.enter_context(socket.create_connection(address, SOON_S))
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        next_free = os.dup(0)
        os.close(next_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (next_free, limits[1]))
        try:
            for _ in range(3):
                with pytest.raises(BlockingIOError):
                    port.listener.accept()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert not is_open(first)
        stack.enter_context(port.listener.accept()[0])
        assert is_open(waiting)
    assert [record.message for record in caplog.records] == ["full port appeared"]


def test_it_raises_the_soft_limit_of_descriptors() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        raise_descriptor_limit()
        raised, kept = resource.getrlimit(resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert raised >= min(hard, 4096)
    assert kept == hard
