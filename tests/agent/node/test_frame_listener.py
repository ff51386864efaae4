"""The listener thread: what it hears, forgets and survives."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator

import pytest

from agent.node.frame_listener import LINK_CHECK_S, Listener
from tests.agent.frame_sockets import FakeInterfaces, SetClock, await_that, frame


class Scene:
    """A listener, its ports and its clock."""

    def __init__(self) -> None:
        self.clock = SetClock()
        self.ports = FakeInterfaces({"eth0": 2, "eth1": 3})
        self.listener = Listener(self.ports, self.clock)

    def names(self) -> dict[str, list[str]]:
        heard = self.listener.snapshot()
        return {port: [one.device_name for one in found] for port, found in heard.neighbors}


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.listener.stop()
    assert all(ear.is_closed for ear in scene.ports.ears.values())
    assert not [one for one in threading.enumerate() if one.name == "frames"]


def test_it_hears_each_port(scene: Scene) -> None:
    scene.listener.listen(("eth0", "eth1"))
    scene.ports.say("eth0", frame("leaf1"))
    scene.ports.say("eth1", frame("leaf2"), frame("leaf3", port="swp9"))
    assert scene.names() == {"eth0": ["leaf1"], "eth1": ["leaf2", "leaf3"]}


def test_it_forgets_when_the_ttl_has_passed(scene: Scene) -> None:
    scene.listener.listen(("eth0",))
    scene.ports.say("eth0", frame(ttl_s=4))
    scene.clock.seconds += 4
    assert scene.names() == {}


def test_it_reports_how_long_it_has_listened(scene: Scene) -> None:
    assert scene.listener.snapshot().listened_s == 0
    scene.listener.listen(("eth0",))
    scene.clock.seconds += 7
    scene.listener.listen(("eth0", "eth1"))
    heard = scene.listener.snapshot()
    assert (heard.listened_s, heard.num_ports) == (7, 2)


def test_it_reopens_nothing_while_the_ports_are_the_same(scene: Scene) -> None:
    for _ in range(3):
        scene.listener.listen(("eth0", "eth1"))
    assert scene.ports.num_opened == 2


def test_it_follows_the_ports(scene: Scene) -> None:
    scene.listener.listen(("eth0", "eth1"))
    scene.ports.say("eth0", frame("leaf1"))
    scene.ports.say("eth1", frame("leaf2"))
    left = scene.ports.ears["eth1"]
    scene.listener.listen(("eth0",))
    assert (left.is_closed, scene.names()) == (True, {"eth0": ["leaf1"]})
    scene.ports.say("eth0", frame("leaf3", port="swp3"))
    assert scene.names() == {"eth0": ["leaf1", "leaf3"]}


def test_it_reopens_a_port_that_was_recreated(scene: Scene) -> None:
    scene.listener.listen(("eth0",))
    scene.ports.say("eth0", frame("leaf1"))
    scene.ports.indexes["eth0"] = 9
    scene.listener.listen(("eth0",))
    assert scene.names() == {}
    scene.ports.say("eth0", frame("leaf2"))
    assert scene.names() == {"eth0": ["leaf2"]}


def test_it_leaves_out_a_port_that_does_not_exist(scene: Scene) -> None:
    scene.listener.listen(("eth0", "eth9"))
    assert scene.listener.snapshot().num_ports == 1


def test_it_retries_a_port_that_could_not_be_opened(scene: Scene) -> None:
    scene.ports.error = OSError(errno.ENODEV, "gone")
    scene.listener.listen(("eth0",))
    assert scene.listener.snapshot().num_ports == 0
    scene.ports.error = None
    scene.listener.listen(("eth0",))
    scene.ports.say("eth0", frame("leaf1"))
    assert scene.names() == {"eth0": ["leaf1"]}


def test_it_reports_missing_permission_and_keeps_nothing_open(scene: Scene) -> None:
    scene.listener.listen(("eth0",))
    scene.ports.error = PermissionError(errno.EPERM, "no")
    with pytest.raises(PermissionError):
        scene.listener.listen(("eth0", "eth1"))
    assert scene.ports.ears["eth0"].is_closed


def test_it_forgets_a_port_that_went_down_and_hears_it_when_it_is_up_again(scene: Scene) -> None:
    scene.listener.listen(("eth0", "eth1"))
    scene.ports.say("eth0", frame("leaf1"))
    scene.ports.say("eth1", frame("leaf2"))
    scene.ports.ears["eth0"].error = OSError(errno.ENETDOWN, "down")
    scene.ports.ears["eth0"].mouth.send(b"")
    await_that(lambda: scene.names() == {"eth1": ["leaf2"]})
    scene.ports.say("eth0", frame("leaf3"))
    assert scene.names() == {"eth0": ["leaf3"], "eth1": ["leaf2"]}


def test_it_survives_a_port_that_breaks(scene: Scene) -> None:
    scene.listener.listen(("eth0", "eth1"))
    scene.ports.say("eth0", frame("leaf1"))
    scene.ports.ears["eth0"].error = OSError(errno.ENXIO, "gone")
    scene.ports.ears["eth0"].mouth.send(b"")
    await_that(lambda: scene.names() == {})
    scene.ports.say("eth1", frame("leaf2"))
    assert scene.names() == {"eth1": ["leaf2"]}


def test_it_forgets_a_port_whose_cable_is_pulled(scene: Scene) -> None:
    scene.listener.listen(("eth0", "eth1"))
    scene.ports.say("eth0", frame("leaf1"))
    scene.ports.say("eth1", frame("leaf2"))
    scene.ports.unlinked.add("eth0")
    scene.clock.seconds += LINK_CHECK_S
    scene.ports.say("eth1", frame("leaf2"))
    await_that(lambda: scene.names() == {"eth1": ["leaf2"]})


def test_it_reports_frames_that_it_could_not_parse(scene: Scene) -> None:
    scene.listener.listen(("eth0",))
    scene.ports.say("eth0", b"nonsense", frame("leaf1", more=b"\xfe\x01\x00"))
    errors = [str(error) for error in scene.listener.snapshot().errors]
    assert len(errors) == 2
    assert all(error.startswith("eth0: ") for error in errors)
    assert scene.names() == {"eth0": ["leaf1"]}


def test_it_is_not_overrun_by_a_flood(scene: Scene) -> None:
    scene.listener.listen(("eth0", "eth1"))
    for number in range(200):
        scene.ports.say("eth0", frame(port=f"p{number}"))
    scene.ports.say("eth1", frame("leaf2"))
    heard = scene.listener.snapshot()
    assert [(port, len(found)) for port, found in heard.neighbors] == [("eth0", 64), ("eth1", 1)]
    assert heard.crowded_ports == ("eth0",)


def test_it_starts_again_after_it_was_stopped(scene: Scene) -> None:
    scene.listener.listen(("eth0",))
    scene.ports.say("eth0", frame("leaf1"))
    scene.listener.stop()
    assert (scene.names(), scene.listener.snapshot().listened_s) == ({}, 0)
    scene.listener.listen(("eth0",))
    scene.ports.say("eth0", frame("leaf2"))
    assert scene.names() == {"eth0": ["leaf2"]}
