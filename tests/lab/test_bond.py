"""The slaves of a real bond: each has its own address behind the one that all of them show."""

import json
import re
from typing import Any

import pytest

from tests.lab.agents import AGENT
from tests.lab.sandbox import Sandbox
from tests.lab.tools import require_tools

pytestmark = [pytest.mark.lab, pytest.mark.timeout(60)]

HOST = "host1"
OWN = {"eth0": "02:00:00:00:00:10", "eth1": "02:00:00:00:00:11"}


def bond(sandbox: Sandbox) -> str:
    """Build a bond of two veths; return the address that all three show."""
    sandbox.run("ip", "netns", "add", HOST)
    try:
        sandbox.run("ip", "link", "add", "bond0", "type", "bond", namespace=HOST)
    except AssertionError as error:
        if "Unknown device type" in str(error):
            pytest.skip("needs bonding in the kernel: run modprobe bonding")
        raise
    for name, mac in OWN.items():
        pair = ("type", "veth", "peer", "name", f"far-{name}")
        sandbox.run("ip", "link", "add", name, "address", mac, *pair, namespace=HOST)
        sandbox.run("ip", "link", "set", name, "master", "bond0", namespace=HOST)
        sandbox.run("ip", "link", "set", f"far-{name}", "up", namespace=HOST)
    sandbox.run("ip", "link", "set", "bond0", "up", namespace=HOST)
    shown = sandbox.run("ip", "-o", "link", "show", namespace=HOST)
    addresses: dict[str, str] = dict(
        re.findall(r"^\d+: (\w+)[@:].*link/ether (\S+)", shown, re.MULTILINE)
    )
    assert addresses["eth0"] == addresses["eth1"] == addresses["bond0"]
    return addresses["bond0"]


def test_it_reports_slaves_with_their_master_and_their_own_addresses() -> None:
    require_tools("unshare", "nsenter", "ip", is_root_needed=True)
    with Sandbox() as sandbox:
        of_bond = bond(sandbox)
        options = ("--node-name", HOST, "--interfaces", "eth*", "--frames", "never")
        printed = sandbox.run(
            *(*AGENT, "once", *options, "--lldpcli", "none", "-o", "json"), namespace=HOST
        )
    (report,) = json.loads(printed)["items"]
    ports = {port["name"]: port for port in report["spec"]["ports"]}
    assert {name: port["bondMaster"] for name, port in ports.items()} == dict.fromkeys(OWN, "bond0")
    macs = {name: _macs(port) for name, port in ports.items()}
    assert macs == {name: [mac] for name, mac in OWN.items()}
    assert of_bond in OWN.values()


def _macs(port: dict[str, Any]) -> list[str]:
    return [one["value"] for one in port["ids"] if one["type"] == "mac"]
