"""How many devices the reports of all hosts may name: those that name the most others lose. Pure.

The size of one report is bounded, but many reports together could name any number of devices
that do not exist.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from topology.model.facts import Device, DeviceKind

MAX_HEARD_DEVICES: Final = 65_536
"""Of all hosts: 25,000 hosts with 8 ports hear some 12,500 leaves of 16 hosts."""
_WHOLE: Final = 1 << 32


def find_heard(device: Device) -> Sequence[int]:
    """Return a number for each device that a host names; of equal devices the same number.

    The numbers hold within the process, and no writer of a report can choose them.
    """
    if device.kind is not DeviceKind.HOST:
        return array("q")
    entries = (neighbor for port in device.ports for neighbor in port.neighbors)
    return array("q", {hash((entry.device_name, entry.device_ids)) for entry in entries})


def find_flooders(
    heard: Mapping[str, Collection[int]], limit: int = MAX_HEARD_DEVICES
) -> frozenset[str]:
    """Return the hosts to ignore, so that the rest name no more devices than the limit.

    A device counts in equal shares for the hosts that name it, so a leaf that many hosts hear
    costs each of them little. Cost: O(entries), and O(hosts log hosts) above the limit.

    Args:
        heard: for each host the distinct devices that it names, by `find_heard`.
        limit: how many devices may be left.
    """
    num_hosts = Counter(device for devices in heard.values() for device in devices)
    num_left, flooders = len(num_hosts), set[str]()
    if num_left <= limit:
        return frozenset()
    shares = {
        name: sum(_WHOLE // num_hosts[device] for device in devices)
        for name, devices in heard.items()
    }
    for name in sorted(shares, key=lambda name: (-shares[name], name)):
        if num_left <= limit:
            break
        flooders.add(name)
        for device in heard[name]:
            num_hosts[device] -= 1
            num_left -= not num_hosts[device]
    return frozenset(flooders)


def without_neighbors(device: Device) -> Device:
    """Return a host that has heard nothing."""
    return replace(device, ports=tuple(port._replace(neighbors=()) for port in device.ports))


def explain_flooder(limit: int = MAX_HEARD_DEVICES) -> str:
    """Return why the entries of a host are left out."""
    return (
        f"all hosts together name more than {limit} devices, and this one names more that few "
        "others hear than most; its neighbor entries are ignored"
    )
