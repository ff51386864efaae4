"""`toponaut path`: the ways between two nodes, and the faults on them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import run


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the reports of 64 hosts with four rails, of which two cables are exchanged."""
    folder = tmp_path_factory.mktemp("path") / "fabric"
    words = ("--hosts", 64, "--rails", 4, "--radix", 16, "--swap", 1, "--out", folder)
    assert run("simulate", "fabric", *words).code == ExitCode.OK
    return folder / "reports"


def test_it_prints_a_way_per_rail_and_the_faults_on_it(reports: Path) -> None:
    head, _, *rows = run("path", "node-0001", "node-0050", "--reports", reports).out.splitlines()
    assert head == "node-0001 and node-0050 meet in core core-01-16"
    assert rows[0].split() == [
        *("1", "mlx5_0/1", "leaf-p01-g01-r1", ">", "8", "switches", ">", "16", "switches", ">"),
        *("8", "switches", ">", "leaf-p04-g07-r1", "mlx5_0/1", "146", "-"),
    ]
    assert rows[1].startswith("2 > 4 > 2  mlx5_1/1")
    assert "leaf-p04-g08-r4" in rows[1]
    assert rows[1].endswith("swapped-cable")
    assert rows[4].startswith("The cables of node-0050 port mlx5_1/1 and node-0057 port mlx5_3/1")


def test_nodes_of_one_leaf_share_two_cables_per_rail(reports: Path) -> None:
    found = run("path", "node-0001", "node-0002", "--reports", reports, "-o", "json").document
    assert found["meetIn"] == {"name": "leaf-p01-g01-r1-4", "tier": "leaf"}
    assert [way["switches"] for way in found["ways"]] == [
        [[f"leaf-p01-g01-r{rail}"]] for rail in range(1, 5)
    ]
    assert found["ways"][0]["cables"] == [
        {
            "a": {"device": f"node-000{node}", "port": "mlx5_0/1"},
            "b": {"device": "leaf-p01-g01-r1", "port": str(node)},
        }
        for node in (1, 2)
    ]


def test_nodes_without_a_cable_between_them_are_said_to_have_none(tmp_path: Path) -> None:
    words = ("--hosts", 16, "--rails", 1, "--radix", 8, "--islands", 2, "--out", tmp_path)
    run("simulate", "fabric", *words)
    ran = run("path", "node-0001", "node-0016", "--reports", tmp_path / "reports")
    assert ran.out.splitlines() == [
        "no domain has both node-0001 and node-0016",
        "no cables lead from node-0001 to node-0016",
    ]


def test_a_node_without_any_link_is_said_to_have_none(tmp_path: Path) -> None:
    words = ("--hosts", 16, "--rails", 2, "--radix", 8, "--lose-host", 1, "--out", tmp_path / "f")
    run("simulate", "fabric", *words)
    reports, nodes = tmp_path / "f" / "reports", tmp_path / "f" / "nodes.yaml"
    tree = run("tree", "--reports", reports, "--nodes", nodes, "-o", "json").document
    (dead,) = (row["node"] for row in tree["unplaced"])
    alive = tree["tiers"][0]["domains"][0]["nodes"][0]
    for pair in ((alive, dead), (dead, alive)):
        lines = run("path", *pair, "--reports", reports, "--nodes", nodes).out.splitlines()
        unlinked = [line for line in lines if line.startswith("no port of ")]
        assert [line.split(" is linked")[0] for line in unlinked] == [f"no port of {dead}"]


def test_a_node_that_is_not_there_gets_the_nearest_names(reports: Path) -> None:
    ran = run("path", "node-0001", "node-002", "--reports", reports)
    assert ran.code == ExitCode.USAGE
    assert "there is no node 'node-002' in these sources; did you mean node-0002" in ran.err


def test_a_switch_is_not_taken_for_a_node(reports: Path) -> None:
    links = run("links", "--reports", reports, "-o", "json").document["links"]
    switch = links[0]["b"]["device"]
    ran = run("path", "node-0001", switch, "--reports", reports)
    assert ran.code == ExitCode.USAGE
    assert f"'{switch}' is a switch: give two nodes" in ran.err


def test_a_node_has_no_path_to_itself(reports: Path) -> None:
    ran = run("path", "node-0001", "node-0001", "--reports", reports)
    assert ran.code == ExitCode.USAGE
    assert "'node-0001' and 'node-0001' are one node" in ran.err


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the reports of 64 hosts with eight rails that have lost two cables of a hundred."""
    folder = tmp_path_factory.mktemp("faulty") / "fabric"
    words = ("--hosts", 64, "--rails", 8, "--radix", 16, "--lose-links", "2%", "--out", folder)
    assert run("simulate", "fabric", *words).code == ExitCode.OK
    return folder / "reports"


def _find_down_port(faulty: Path) -> tuple[str, str]:
    """Return a host and its port that is down."""
    found = run("findings", "--reports", faulty, "-o", "json").document
    subject = next(row["subject"] for row in found if row["kind"] == "down-port")
    return subject["device"], subject["port"]


@pytest.mark.parametrize("is_last", [False, True])
def test_a_rail_with_a_dead_end_has_no_way_and_names_its_finding(
    faulty: Path, *, is_last: bool
) -> None:
    node, port = _find_down_port(faulty)
    other = "node-0001" if node != "node-0001" else "node-0002"
    ends = (other, node) if is_last else (node, other)
    ways = run("path", *ends, "--reports", faulty, "-o", "json").document["ways"]
    assert sorted(way["rail"] for way in ways) == [*range(1, 9)]
    way = next(way for way in ways if way["toPort"] == port)
    assert (way["fromPort"], way["switches"], way["cables"]) == (port, [], [])
    assert way["deadEnds"] == [
        {"end": "b" if is_last else "a", "device": node, "port": port, "state": "down"}
    ]
    assert "down-port" in {row["kind"] for row in way["findings"]}
    assert all(port in row["message"] for row in way["findings"])
    text = run("path", *ends, "--reports", faulty).out
    row = next(line for line in text.splitlines() if f"{port} down" in line)
    assert "no way on this rail" in row
    assert way["findings"][0]["message"] in text


def test_the_missing_cables_of_the_stages_are_named_and_no_others(faulty: Path) -> None:
    found = run("findings", "--reports", faulty, "-o", "json").document
    gaps = {
        row["message"]: {end["device"] for end in row["evidence"]["ports"]}
        for row in found
        if row["kind"] == "missing-link"
    }
    leaf = next(
        device
        for devices in gaps.values()
        for device in devices
        if device.startswith("leaf") and any(other.startswith("spine") for other in devices)
    )
    hosts = run("links", "--reports", faulty, "--device", leaf, "-o", "json").document["links"]
    node = next(row["a"]["device"] for row in hosts if row["a"]["device"].startswith("node"))
    pod = leaf.split("-")[1]
    other = "node-0064" if pod == "p01" else "node-0001"
    ran = run("path", node, other, "--reports", faulty, "-o", "json")
    way = next(way for way in ran.document["ways"] if way["switches"][0:1] == [[leaf]])
    named = {row["message"] for row in way["findings"]}
    far = way["switches"][-1][0]
    of_leaves = {
        message
        for message, devices in gaps.items()
        if devices & {leaf, far} and any(name.startswith("spine") for name in devices)
    }
    assert of_leaves
    assert of_leaves <= named
    assert not {
        message
        for message, devices in gaps.items()
        if message in named
        and any(name.startswith("leaf") for name in devices)
        and not devices & {leaf, far}
    }
    num = len(named & gaps.keys())
    text = run("path", node, other, "--reports", faulty).out
    row = next(line for line in text.splitlines() if f" {leaf} > " in line)
    assert f"{num} missing-link" in row


def test_a_node_without_a_rail_is_reached_at_another_port_and_the_row_says_so(
    tmp_path: Path,
) -> None:
    words = ("--hosts", 16, "--rails", 2, "--radix", 8, "--out", tmp_path)
    assert run("simulate", "fabric", *words).code == ExitCode.OK
    (sweep,) = (tmp_path / "ibnetdiscover").iterdir()
    lacking = "|".join(f"node-{number:04} mlx5_1" for number in range(9, 17))
    text = re.sub(rf'(?m)^Ca.*"({lacking})"\n.*\n', "", sweep.read_text())
    sweep.write_text(re.sub(rf'(?m)^.*"({lacking})".*\n', "", text))
    found = {}
    for ends in (("node-0001", "node-0009"), ("node-0009", "node-0001")):
        ran = run("path", *ends, "--ibnetdiscover", sweep, "-o", "json")
        found[ends[0]] = [
            (way["rail"], way["rails"], way["fromPort"], way["toPort"], way["deadEnds"])
            for way in ran.document["ways"]
        ]
    assert found == {
        "node-0001": [
            (1, [1], "mlx5_0/1", "mlx5_0/1", []),
            (2, [2, 1], "mlx5_1/1", "mlx5_0/1", []),
        ],
        "node-0009": [
            (1, [1], "mlx5_0/1", "mlx5_0/1", []),
            (2, [1, 2], "mlx5_0/1", "mlx5_1/1", []),
        ],
    }


def test_many_missing_cables_between_switches_are_one_line_and_wide_explains_each(
    faulty: Path,
) -> None:
    ends = ("path", "node-0001", "node-0064", "--reports", faulty)
    ways = run(*ends, "-o", "json").document["ways"]
    gaps = {
        row["message"]
        for way in ways
        for row in way["findings"]
        if row["message"].startswith(("leaf", "spine", "core"))
    }
    assert len(gaps) > 2
    text = run(*ends).out
    (line,) = [line for line in text.splitlines() if "(-o wide explains each)" in line]
    assert line.startswith(f"{len(gaps)} findings of missing cables between switches: ")
    assert not [message for message in gaps if message in text]
    wide = run(*ends, "-o", "wide").out
    assert [message for message in gaps if message not in wide] == []
