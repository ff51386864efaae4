from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.topology.synthetic.fabrics import SPECS
from topology.model.errors import ConfigError
from topology.model.facts import Medium, PortName
from topology.model.ids import parse_guid, parse_mac, parse_node_name
from topology.synthetic import FabricKind, SyntheticSpec, Wiring, build_wiring
from topology.synthetic.spec import SPINE_RANK
from topology.synthetic.wiring import (
    GUID_STEP,
    HCA_GUIDS,
    NIC_MACS,
    NUM_SERIALS,
    SWITCH_GUIDS,
    SWITCH_MACS,
)

WIRINGS = [pytest.param(build_wiring(spec), id=title) for title, spec in SPECS.items()]


def ends(wiring: Wiring) -> list[PortName]:
    return [end for cable in wiring.cables for end in cable]


@pytest.mark.parametrize("wiring", WIRINGS)
def test_it_uses_each_port_once(wiring: Wiring) -> None:
    assert max(Counter(ends(wiring)).values()) == 1


@pytest.mark.parametrize("wiring", WIRINGS)
def test_it_numbers_switch_ports_within_the_radix(wiring: Wiring) -> None:
    num_ports = {switch.name: switch.num_ports for switch in wiring.switches}
    prefix = "swp" if wiring.spec.medium is Medium.ETHERNET else ""
    used = [end for end in ends(wiring) if end.device in num_ports]
    numbers = [(int(end.port.removeprefix(prefix)), num_ports[end.device]) for end in used]
    assert all(1 <= number <= most for number, most in numbers)


@pytest.mark.parametrize("wiring", WIRINGS)
def test_it_joins_adjacent_ranks_only(wiring: Wiring) -> None:
    rank = {switch.name: switch.rank for switch in wiring.switches}
    rank |= {host.name: 0 for host in wiring.hosts}
    steps = {rank[high.device] - rank[low.device] for low, high in wiring.cables}
    spec = wiring.spec
    has_others = spec.kind is FabricKind.DRAGONFLY_PLUS or spec.storage_leaves or spec.peer_links
    assert steps == ({0, 1} if has_others else {1})


@pytest.mark.parametrize("wiring", WIRINGS)
def test_it_connects_every_leaf_of_a_pod_to_every_spine_of_its_plane(wiring: Wiring) -> None:
    spines: dict[tuple[int, tuple[int, ...]], set[str]] = {}
    for switch in wiring.switches:
        if switch.rank == 2:
            spines.setdefault((switch.plane, switch.path), set()).add(switch.name)
    seen: dict[str, set[str]] = {}
    rank = {switch.name: switch.rank for switch in wiring.switches}
    for low, high in wiring.cables:
        if rank[high.device] == SPINE_RANK:
            seen.setdefault(low.device, set()).add(high.device)
    leaves = [switch for switch in wiring.switches if switch.rank == 1]
    assert all(seen[leaf.name] == spines[leaf.plane, leaf.path[:-1]] for leaf in leaves)


@pytest.mark.parametrize("wiring", WIRINGS)
def test_it_joins_planes_by_hosts_only(wiring: Wiring) -> None:
    planes = {switch.name: switch.plane for switch in wiring.switches}
    nics = {(host.name, nic.port): nic.plane for host in wiring.hosts for nic in host.nics}
    pairs = [
        (nics[low] if low in nics else planes[low.device], planes[high.device])
        for low, high in wiring.cables
    ]
    assert all(low == high for low, high in pairs)
    assert {high for _, high in pairs} == set(range(wiring.spec.num_planes))


def test_it_joins_the_two_leaves_of_every_pair_by_peer_links() -> None:
    wiring = build_wiring(SPECS["MLAG pairs with peer links"])
    leaves = {switch.name: switch.path for switch in wiring.switches if switch.rank == 1}
    pairs = [pair for pair in wiring.cables if leaves.keys() >= {end.device for end in pair}]
    assert all(leaves[low.device] == leaves[high.device] for low, high in pairs)
    num_links = Counter((low.device, high.device) for low, high in pairs)
    assert set(num_links.values()) == {2}
    assert len(pairs) == len(leaves)


def test_it_joins_every_host_to_every_storage_leaf_once() -> None:
    wiring = build_wiring(SPECS["rails with storage leaves"])
    storage = {switch.name for switch in wiring.switches if switch.rank == 0}
    assert storage == {"storage-01", "storage-02"}
    met = Counter(
        (low.device, high.device) for low, high in wiring.cables if high.device in storage
    )
    assert set(met) == {(host.name, name) for host in wiring.hosts for name in storage}
    assert set(met.values()) == {1}


@pytest.mark.parametrize("kind", list(FabricKind))
def test_no_cable_leaves_an_island(kind: FabricKind) -> None:
    spec = SyntheticSpec(kind, 60, rails=2, radix=8, islands=2)
    whole, cut = build_wiring(replace(spec, islands=0)), build_wiring(spec)
    pods = {switch.name: switch.path[:1] for switch in cut.switches}
    apart = sorted({pod for pod in pods.values() if pod})[-2:]
    bridges = set(whole.cables) - set(cut.cables)
    assert set(cut.cables) < set(whole.cables)
    for low, high in bridges:
        assert pods[low.device] != pods[high.device]
    for low, high in cut.cables:
        assert pods.get(low.device, pods[high.device]) == pods[high.device] or not (
            {pods[low.device], pods[high.device]} & set(apart)
        )


def test_it_joins_any_two_groups_of_a_dragonfly_by_equally_many_cables() -> None:
    wiring = build_wiring(SPECS["a dragonfly+ of uneven groups"])
    paths = {switch.name: switch.path for switch in wiring.switches if switch.rank == 2}
    pairs = Counter(
        frozenset((paths[low.device], paths[high.device]))
        for low, high in wiring.cables
        if low.device in paths
    )
    num_groups = len(set(paths.values()))
    assert {len(pair) for pair in pairs} == {2}
    assert len(pairs) == num_groups * (num_groups - 1) // 2
    assert len(set(pairs.values())) == 1


@pytest.mark.parametrize("wiring", WIRINGS)
def test_it_spreads_parallel_cables_evenly(wiring: Wiring) -> None:
    switches = {switch.name: switch.rank for switch in wiring.switches}
    pairs = Counter(
        (low.device, high.device)
        for low, high in wiring.cables
        if switches.get(low.device, 0) < switches[high.device]
    )
    for rank in range(1, wiring.num_ranks):
        found = {num for (low, _), num in pairs.items() if switches.get(low) == rank}
        assert len(found) == 1


@pytest.mark.parametrize("wiring", WIRINGS)
def test_it_puts_all_ports_of_a_host_into_one_leaf_group(wiring: Wiring) -> None:
    leaves = {switch.name: switch for switch in wiring.switches if switch.rank == 1}
    groups: dict[str, set[tuple[int, ...]]] = {}
    met: dict[str, list[str]] = {}
    for low, high in wiring.cables:
        if low.device not in leaves and high.device in leaves:
            groups.setdefault(low.device, set()).add(leaves[high.device].path)
            met.setdefault(low.device, []).append(high.device)
    assert len(groups) == wiring.spec.num_hosts
    assert {len(paths) for paths in groups.values()} == {1}
    num_ports = wiring.spec.ports_per_host
    assert {(len(names), len(set(names))) for names in met.values()} == {(num_ports, num_ports)}


def is_local(mac: str) -> bool:
    """Return whether an address is locally administered, and of one device."""
    return int(mac[:2], 16) & 0b11 == 0b10


def test_macs_and_guids_of_the_largest_fabric_are_local_and_belong_to_one_device() -> None:
    macs, guids = (NIC_MACS, SWITCH_MACS), (HCA_GUIDS, SWITCH_GUIDS)
    for bases, step in ((macs, 1), (guids, GUID_STEP)):
        low, high = sorted(bases)
        assert low + (NUM_SERIALS - 1) * step < high
    for first in macs:
        digits = {f"{first + serial:012x}"[:2] for serial in (0, 200_000, NUM_SERIALS - 1)}
        assert all(map(is_local, digits))


@pytest.mark.parametrize("wiring", WIRINGS)
def test_it_gives_devices_unique_names_and_canonical_ids(wiring: Wiring) -> None:
    nics = [nic for host in wiring.hosts for nic in host.nics]
    guids = [switch.guid for switch in wiring.switches] + [nic.guid for nic in nics]
    macs = [switch.mac for switch in wiring.switches] + [nic.mac for nic in nics]
    names = [switch.name for switch in wiring.switches] + [host.name for host in wiring.hosts]
    for values in (guids, macs, names):
        assert len(set(values)) == len(values)
    assert [parse_guid(guid) for guid in guids] == guids
    assert [parse_mac(mac) for mac in macs] == macs
    assert all(is_local(mac) for mac in macs)
    assert all(parse_node_name(host.name) for host in wiring.hosts)
    numbers = sorted(int(guid, 16) for guid in guids)
    assert min(b - a for a, b in pairwise(numbers)) >= 0x10


@pytest.mark.parametrize(
    ("spec", "num_by_rank"),
    [
        pytest.param(
            SyntheticSpec(FabricKind.RAIL, 1024),
            {1: 256, 2: 256, 3: 128},
            id="1024 hosts with eight rails fill eight pods",
        ),
        pytest.param(
            SyntheticSpec(FabricKind.FAT_TREE, 2048),
            {1: 64, 2: 32},
            id="two tiers have at most 64 full leaves of 64 ports",
        ),
        pytest.param(
            SyntheticSpec(FabricKind.FAT_TREE, 2049),
            {1: 65, 2: 96, 3: 64},
            id="one more host needs a third tier",
        ),
        pytest.param(
            SyntheticSpec(FabricKind.FAT_TREE, 16, radix=16),
            {1: 2, 2: 2},
            id="two spines although one would be enough",
        ),
    ],
)
def test_it_uses_as_few_switches_as_possible(
    spec: SyntheticSpec, num_by_rank: dict[int, int]
) -> None:
    assert Counter(switch.rank for switch in build_wiring(spec).switches) == num_by_rank


def test_plain_names_have_positions() -> None:
    wiring = build_wiring(SPECS["rails in three tiers"])
    assert wiring.cables[0] == (
        PortName("node-0001", "mlx5_0/1"),
        PortName("leaf-p01-g01-r1", "1"),
    )
    assert wiring.cables[-1].low.device == "spine-p08-04"
    assert wiring.switches[-1].name == "core-16"


def test_it_names_ethernet_ports_as_linux_does() -> None:
    wiring = build_wiring(SPECS["MLAG pairs on Ethernet"])
    assert wiring.cables[1] == (PortName("node-0001", "eth1"), PortName("leaf-p01-g01-b", "swp1"))


def test_opaque_names_hide_positions() -> None:
    wiring = build_wiring(SPECS["useless names"])
    plain = build_wiring(SPECS["rails in three tiers"])
    assert not {switch.name for switch in wiring.switches} & {one.name for one in plain.switches}
    names = [host.name for host in wiring.hosts]
    assert names != sorted(names)
    assert sorted(names) == [host.name for host in plain.hosts]
    for devices in (wiring.switches, [nic for host in wiring.hosts for nic in host.nics]):
        guids = [device.guid for device in devices]
        assert guids != sorted(guids)
        assert len(set(guids)) == len(guids)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(
            SyntheticSpec(FabricKind.FAT_TREE, 0), "at least one host, got 0", id="no host at all"
        ),
        pytest.param(
            SyntheticSpec(FabricKind.FAT_TREE, 8, radix=7), "even radix", id="an odd radix"
        ),
        pytest.param(
            SyntheticSpec(FabricKind.FAT_TREE, 8, radix=2), "or more, got 2", id="two ports"
        ),
        pytest.param(SyntheticSpec(FabricKind.RAIL, 8, rails=0), "one rail", id="no rail"),
        pytest.param(SyntheticSpec(FabricKind.FAT_TREE, 8, tiers=1), "2 to 4", id="a single tier"),
        pytest.param(SyntheticSpec(FabricKind.FAT_TREE, 8, tiers=5), "2 to 4", id="five tiers"),
        pytest.param(
            SyntheticSpec(FabricKind.FAT_TREE, 2049, tiers=2), "larger radix", id="too few tiers"
        ),
        pytest.param(
            SyntheticSpec(FabricKind.RAIL, 64, rails=8, radix=8),
            "do not fit into 4 tiers",
            id="more rails than a spine has ports downwards",
        ),
        pytest.param(
            SyntheticSpec(FabricKind.DRAGONFLY_PLUS, 8, tiers=3),
            "2 ranks",
            id="a dragonfly+ with three tiers",
        ),
        pytest.param(
            SyntheticSpec(FabricKind.DRAGONFLY_PLUS, 41, radix=4),
            "cannot all be connected to each other",
            id="more groups than spines have ports",
        ),
        pytest.param(
            SyntheticSpec(FabricKind.FAT_TREE, 8, storage_leaves=1),
            "fewer storage leaves",
            id="as many storage leaves as leaves",
        ),
        pytest.param(
            SyntheticSpec(FabricKind.RAIL, 8, peer_links=1), "only MLAG", id="peer links of rails"
        ),
        pytest.param(
            SyntheticSpec(FabricKind.RAIL, 8, uplinks=33),
            "1 to 32 up-links",
            id="too many up-links",
        ),
        pytest.param(
            SyntheticSpec(FabricKind.RAIL, 8, nvlink_hosts=5),
            "a divisor",
            id="cliques across leaves",
        ),
        pytest.param(
            SyntheticSpec(FabricKind.RAIL, 8, islands=1), "1 pods", id="a single pod as an island"
        ),
        pytest.param(
            SyntheticSpec(FabricKind.RAIL, 8, medium=Medium.NVLINK), "NVLink", id="NVLink cables"
        ),
        pytest.param(
            SyntheticSpec(FabricKind.RAIL, 8, rate_bps=123), "rate", id="a rate that no cable has"
        ),
    ],
)
def test_it_refuses_what_cannot_be_built(spec: SyntheticSpec, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        build_wiring(spec)
