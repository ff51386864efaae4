"""Switches by SNMP: real snmpd and lldpd, walked over a management network."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.daemonset.readers import written
from tests.lab.agents import toponaut, write_objects
from tests.lab.snmp import (
    AUTH_KEY,
    COMMUNITY,
    DEAD,
    MANAGEMENT,
    NETWORK,
    PRIV_KEY,
    USER,
    SnmpFabric,
)
from topology.model.facts import Device, Neighbor, PortState
from topology.model.tree import host_partitions, parse_tree
from topology.reports.neighbor_report import parse_report
from topology.sources.lldp.lldpcli import parse_neighbors
from topology.synthetic import Wiring, build_undamaged, derive_truth

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("lldpd")]


class Walked(NamedTuple):
    """How `toponaut switches` ended."""

    code: int
    stdout: str
    stderr: str

    def reports(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(self.stdout)["items"]
        return items

    def devices(self) -> dict[str, Device]:
        """Return the report of each switch by its name."""
        devices = [parse_report(item).device for item in self.reports()]
        return {device.name: device for device in devices if device is not None}

    def outcomes(self) -> dict[str, tuple[str, float]]:
        """Return outcome and seconds by address, of the table for people."""
        rows = [line.split() for line in self.stdout.splitlines()[1:]]
        return {row[0]: (row[1], float(row[-1])) for row in rows}


# Exit codes are tested too, so the shell reports them instead of failing.
_RUN = 'out=$1; shift; "$@" >"$out/stdout" 2>"$out/stderr"; echo $?'


def walk(fabric: SnmpFabric, folder: Path, config: dict[str, Any], output: str = "json") -> Walked:
    file = folder / "switches.yaml"
    file.write_text(json.dumps(config))
    # Any warning of the SNMP library would be an error in the tests, so it is one here.
    program = (sys.executable, "-W", "error", "-m", "generator", "switches", "--config", str(file))
    code = fabric.sandbox.run(
        *("sh", "-c", _RUN, "sh", str(folder), *program, "-o", output), namespace=MANAGEMENT
    )
    stdout, stderr = ((folder / name).read_text() for name in ("stdout", "stderr"))
    return Walked(int(code), stdout, stderr)


def secret(folder: Path, name: str, value: str) -> str:
    file = folder / name
    file.write_text(value + "\n")
    file.chmod(0o600)
    return name


def v2c(folder: Path, addresses: Sequence[str], community: str = COMMUNITY) -> dict[str, Any]:
    name = f"community-{community}"
    return {"addresses": list(addresses), "communityFile": secret(folder, name, community)}


def v3(
    folder: Path, addresses: Sequence[str], user: str = USER, auth: str = AUTH_KEY
) -> dict[str, Any]:
    return {
        "addresses": list(addresses),
        "version": 3,
        "user": user,
        "authKeyFile": secret(folder, f"auth-{auth}", auth),
        "privKeyFile": secret(folder, "priv", PRIV_KEY),
    }


def neighbors(device: Device) -> dict[str, tuple[Neighbor, ...]]:
    return {
        port.name: tuple(sorted(port.neighbors, key=repr))
        for port in device.ports
        if port.neighbors
    }


def test_it_hears_by_snmp_what_lldpcli_prints_on_each_switch(
    snmp_fabric: SnmpFabric, tmp_path: Path
) -> None:
    addresses = list(snmp_fabric.addresses.values())
    walked = walk(snmp_fabric, tmp_path, {"switches": [v2c(tmp_path, addresses)]})
    assert (walked.code, walked.stderr) == (0, "")
    assert set(walked.devices()) == snmp_fabric.switches
    for name, device in walked.devices().items():
        printed = parse_neighbors(snmp_fabric.json0(name))
        assert not printed.errors
        assert neighbors(device) == {
            port: tuple(sorted((one._replace(ttl_s=None) for one in heard), key=repr))
            for port, heard in printed.ports
        }
        assert {port.state for port in device.ports if port.neighbors} == {PortState.UP}


@pytest.mark.long
def test_it_tells_the_same_by_version_3(snmp_fabric: SnmpFabric, tmp_path: Path) -> None:
    addresses = list(snmp_fabric.addresses.values())
    plain = walk(snmp_fabric, tmp_path, {"switches": [v2c(tmp_path, addresses)]})
    hidden = walk(snmp_fabric, tmp_path, {"switches": [v3(tmp_path, addresses)]})
    assert (hidden.code, hidden.stderr) == (0, "")
    assert [row["spec"] for row in hidden.reports()] == [row["spec"] for row in plain.reports()]


def test_it_finds_the_tree_that_was_cabled_by_its_switches_alone(
    snmp_fabric: SnmpFabric, lldp_wiring: Wiring, tmp_path: Path
) -> None:
    first = snmp_fabric.addresses[min(snmp_fabric.switches)]
    config = {"switches": [v2c(tmp_path, [first])], "discover": {"networks": [NETWORK]}}
    walked = walk(snmp_fabric, tmp_path, config)
    assert walked.code == 0, walked.stderr
    assert set(walked.devices()) == snmp_fabric.switches
    reports = write_objects(tmp_path / "reports", walked.reports())
    found = parse_tree(toponaut("tree", "--reports", str(reports)))
    truth = derive_truth(build_undamaged(lldp_wiring))
    assert host_partitions(found)[0] == frozenset(
        frozenset(domain.nodes) for domain in truth.domains if domain.tier == 1
    )


@pytest.mark.long
def test_it_is_not_delayed_by_a_dead_address(snmp_fabric: SnmpFabric, tmp_path: Path) -> None:
    addresses = [DEAD, *snmp_fabric.addresses.values()]
    walked = walk(snmp_fabric, tmp_path, {"switches": [v2c(tmp_path, addresses)]}, "text")
    assert walked.code == 3
    outcomes = walked.outcomes()
    dead, dead_s = outcomes.pop(DEAD)
    assert dead == "unreachable"
    assert {outcome for outcome, _ in outcomes.values()} == {"ok"}
    assert max(seconds for _, seconds in outcomes.values()) < dead_s
    assert f"switch {DEAD}: unreachable: no answer" in walked.stderr


@pytest.mark.long
def test_it_tells_a_wrong_key_from_silence(snmp_fabric: SnmpFabric, tmp_path: Path) -> None:
    one, two, three, four, *_ = snmp_fabric.addresses.values()
    groups = [
        v3(tmp_path, [one], auth="not-the-key"),
        v3(tmp_path, [two], user="nobody"),
        v2c(tmp_path, [three], community="not-this-one"),
        v3(tmp_path, [four]),
    ]
    walked = walk(snmp_fabric, tmp_path, {"switches": groups}, "text")
    assert {address: outcome for address, (outcome, _) in walked.outcomes().items()} == {
        one: "refused",
        two: "refused",
        three: "unreachable",
        four: "ok",
    }
    assert "not-the-key" not in walked.stderr + walked.stdout
    assert "not-this-one" not in walked.stderr + walked.stdout


def test_the_lines_of_the_docs_walk_a_switch_and_save_its_walk(
    snmp_fabric: SnmpFabric, tmp_path: Path
) -> None:
    address = next(iter(snmp_fabric.addresses.values()))
    config = {"switches": [v2c(tmp_path, [address])]}
    (tmp_path / "switches.yaml").write_text(json.dumps(config))
    secret(tmp_path, "community", COMMUNITY)
    (tmp_path / "walks").mkdir()
    (once,) = written("switches.md", "Walk the switches once")
    (saved,) = written("switches.md", "Read saved walks")
    path = f"PATH={Path(sys.executable).parent}:$PATH"
    lines = "\n".join(("set -eu", f"cd {tmp_path}", path, once, saved.replace("10.0.0.1", address)))
    printed = snmp_fabric.sandbox.run("bash", "-c", lines, namespace=MANAGEMENT, timeout_s=120)
    assert printed.count("in 1 domain") == 2, printed
