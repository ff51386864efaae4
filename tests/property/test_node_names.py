"""However nodes and hosts are named, domains stay the same, and no unmatched side is silent.

A case draws what each host calls itself, what its node is called, and which field of the node's
entry gives the name of the host. The domains must be those of the same fabric where every node is
called like its host.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.ingest.inputs import Inputs
from generator.objects.inventory import parse_nodes
from generator.observe.observation import Observation, observe
from tests.effort import examples
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.facts import Device, DeviceKind, FindingKind, Medium
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    report_claims,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

NUM_HOSTS: Final = 16
NOW: Final = datetime(2026, 11, 27, tzinfo=UTC)
HOST_NAMES: Final[Mapping[str, Callable[[int], str]]] = {
    "plain": lambda host: f"node-{host:04}",
    "capitals": lambda host: f"NODE-{host:04}",
    "long": lambda host: f"node-{host:04}.cluster.example",
    "one label in two domains": lambda host: f"gpu{host // 2:02}.rack-{'ab'[host % 2]}.example",
    "addresses": lambda host: f"10.9.0.{host}",
}
NODE_NAMES: Final[Mapping[str, Callable[[int], str]]] = {
    "addresses": lambda host: f"10.0.4.{host}",
    "of a cloud": lambda host: f"ip-10-0-4-{host}.ec2.internal",
    "other numbers": lambda host: f"gpu-node-{NUM_HOSTS - host}",
}
Entry = dict[str, Any]


def kube_node(name: str, *addresses: tuple[str, str], **labels: str) -> Entry:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"addresses": [{"type": kind, "address": value} for kind, value in addresses]},
    }


HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
ENTRIES: Final[Mapping[str, Callable[[str, str], Entry]]] = {
    "its name": lambda _, host: kube_node(host.lower()),
    "Hostname": lambda node, host: kube_node(node, ("Hostname", host), ("InternalIP", "10.0.0.9")),
    "InternalDNS": lambda node, host: kube_node(node, ("Hostname", node), ("InternalDNS", host)),
    "ExternalDNS": lambda node, host: kube_node(node, ("ExternalDNS", host)),
    "label": lambda node, host: kube_node(node, ("Hostname", node), **{HOSTNAME_LABEL: host}),
    "all": lambda node, host: kube_node(node, ("Hostname", host), **{HOSTNAME_LABEL: host}),
    "own": lambda node, host: {"name": node, "ids": [{"type": "hostname", "value": host}]},
}
"""By what gives the name of the host: the entry of a node."""


def build_sweep() -> str:
    spec = SyntheticSpec(FabricKind.RAIL, NUM_HOSTS, rails=2, radix=8)
    return render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(spec))))


def build_walks() -> list[Device]:
    spec = SyntheticSpec(FabricKind.DUAL_HOMED, NUM_HOSTS, radix=8, medium=Medium.ETHERNET)
    reports = report_claims(build_undamaged(build_wiring(spec)))
    return [row.device for row in reports if row.device.kind is DeviceKind.SWITCH]


SWEEP: Final = build_sweep()
WALKS: Final = build_walks()


USUAL: Final = "{host} {label}"
DESCRIPTIONS: Final[Mapping[str, str]] = {
    "two blanks and the model": "{host}  MT4129 ConnectX7",
    "the model alone": "{host} ConnectX7",
    "the label first": "{label} {host}",
    "the model first": "MT4129 ConnectX7 {host}",
    "the model first, and the label": "ConnectX7 {host} {label}",
    "the label within": "{host} {label} of cell-3",
    "a bracket": "ConnectX7 ({host})",
    "keys and values": "host={host};dev={label}",
    "a path": "cell-3/{host}/{label}",
    "a comma": "{label}, {host}, cell-3",
    "an at sign": "{label}@{host}",
    "a factory text": "{host} Mellanox Technologies MT4129 ConnectX7",
}
"""How node descriptions give the name of the host beside what else they say."""


def read_sweep(host_names: Mapping[str, str], form: str = USUAL) -> tuple[Claim | SweptClaims, ...]:
    text = re.sub(
        r'"(node-\d{4}) (mlx5_\d+)"',
        lambda found: f'"{form.format(host=host_names[found[1]], label=found[2])}"',
        SWEEP,
    )
    return (SweptClaims(parse_ibnetdiscover(text.encode()).devices),)


def read_walks(host_names: Mapping[str, str]) -> tuple[Claim | SweptClaims, ...]:
    return tuple(
        Claim(
            replace(
                device,
                ports=tuple(
                    port._replace(
                        neighbors=tuple(
                            one._replace(
                                device_name=host_names.get(one.device_name, one.device_name)
                            )
                            for one in port.neighbors
                        )
                    )
                    for port in device.ports
                ),
            ),
            Origin.REPORT,
        )
        for device in WALKS
    )


SOURCES: Final = {"a sweep": read_sweep, "walks": read_walks}


def observe_named(source: str, host_names: Sequence[str], entries: Sequence[Entry]) -> Observation:
    """Return what follows if hosts call themselves so and the list has these entries."""
    called = {f"node-{host:04}": name for host, name in enumerate(host_names, 1)}
    return observe_listed(SOURCES[source](called), entries)


def observe_listed(
    claims: tuple[Claim | SweptClaims, ...], entries: Sequence[Entry]
) -> Observation:
    documents = [entry if "kind" in entry else {"nodes": [entry]} for entry in entries]
    raw = "\n---\n".join(map(json.dumps, documents)).encode()
    inputs = Inputs(claims, inventory=parse_nodes(raw, source="nodes"))
    found = observe(inputs, now=NOW)
    assert found is not None
    return found.observation


def domains_of(found: Observation, number_of: Mapping[str, int]) -> set[tuple[int, frozenset[int]]]:
    """Return the domains, each as its tier and the numbers of its hosts."""
    tree = found.tree
    return {
        (domain.tier, frozenset(number_of[node] for node in tree.nodes_of(domain)))
        for domain in tree.domains
    }


def expected_domains(source: str) -> set[tuple[int, frozenset[int]]]:
    names = [f"node-{host:04}" for host in range(1, NUM_HOSTS + 1)]
    found = observe_named(source, names, [kube_node(name) for name in names])
    return domains_of(found, {name: host for host, name in enumerate(names, 1)})


EXPECTED: Final = {source: expected_domains(source) for source in SOURCES}


def name_of(entry: Entry) -> str:
    return str(entry["metadata"]["name"] if "kind" in entry else entry["name"])


def test_the_fabric_has_several_domains_of_all_hosts() -> None:
    for domains in EXPECTED.values():
        assert len(domains) > 2
        assert frozenset().union(*(hosts for _, hosts in domains)) == set(range(1, NUM_HOSTS + 1))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("host_form", HOST_NAMES)
@settings(max_examples=examples(25), deadline=None)
@given(
    node_form=st.sampled_from(sorted(NODE_NAMES)),
    given_by=st.lists(st.sampled_from(sorted(ENTRIES)), min_size=NUM_HOSTS, max_size=NUM_HOSTS),
)
def test_names_change_no_domain(
    source: str, host_form: str, node_form: str, given_by: list[str]
) -> None:
    host_names = [HOST_NAMES[host_form](host) for host in range(1, NUM_HOSTS + 1)]
    node_names = [NODE_NAMES[node_form](host) for host in range(1, NUM_HOSTS + 1)]
    entries = [
        ENTRIES[field](node, host)
        for field, node, host in zip(given_by, node_names, host_names, strict=True)
    ]
    found = observe_named(source, host_names, entries)
    numbers = {name_of(entry): host for host, entry in enumerate(entries, 1)}
    assert domains_of(found, numbers) == EXPECTED[source]
    kinds = {finding.kind for finding in found.findings}
    assert not kinds & {FindingKind.UNMATCHED_NODES, FindingKind.DUPLICATE_NAME}


@pytest.mark.parametrize("form", DESCRIPTIONS.values(), ids=DESCRIPTIONS)
@pytest.mark.parametrize("host_form", HOST_NAMES)
@pytest.mark.parametrize("given_by", ["its name", "label"])
def test_a_host_is_found_wherever_its_name_is_in_a_description(
    form: str, host_form: str, given_by: str
) -> None:
    called = {f"node-{host:04}": HOST_NAMES[host_form](host) for host in range(1, NUM_HOSTS + 1)}
    entries = [
        ENTRIES[given_by](f"gpu-node-{number}", host)
        for number, host in enumerate(called.values(), 1)
    ]
    found = observe_listed(read_sweep(called, form), entries)
    numbers = {name_of(entry): host for host, entry in enumerate(entries, 1)}
    assert domains_of(found, numbers) == EXPECTED["a sweep"]


@pytest.mark.parametrize("form", ["{host} {other}", "{other}: {host}", "{host}+{other} mlx5_0"])
def test_a_description_with_two_names_means_neither_and_is_reported(form: str) -> None:
    names = {f"node-{host:04}": f"node-{host:04}" for host in range(1, NUM_HOSTS + 1)}
    claims = read_sweep(names | {"node-0003": form.format(host="node-0003", other="node-0004")})
    found = observe_listed(claims, [kube_node(name) for name in names])
    assert "node-0003" in {gone.node for gone in found.tree.unplaced}
    said = [one.message for one in found.findings if one.kind is FindingKind.UNRESOLVED_HOST]
    assert said
    assert all("has the names of the nodes node-0003, node-0004" in one for one in said)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("suffix", [".cluster.local", ""])
def test_a_domain_on_one_side_changes_no_domain(source: str, suffix: str) -> None:
    short = [f"node-{host:04}" for host in range(1, NUM_HOSTS + 1)]
    entries = [kube_node(f"{name}{suffix}") for name in short]
    host_names = short if suffix else [f"{name}.fabric.example" for name in short]
    found = observe_named(source, host_names, entries)
    numbers = {name_of(entry): host for host, entry in enumerate(entries, 1)}
    assert domains_of(found, numbers) == EXPECTED[source]


@pytest.mark.parametrize("source", SOURCES)
@settings(max_examples=examples(40), deadline=None)
@given(
    node_form=st.sampled_from(sorted(NODE_NAMES)),
    host_form=st.sampled_from(sorted(HOST_NAMES)),
    lost=st.sets(st.integers(1, NUM_HOSTS), min_size=1),
)
def test_it_lists_both_sides_that_nothing_matches(
    source: str, node_form: str, host_form: str, lost: set[int]
) -> None:
    """The others keep their domains, without the lost nodes."""
    host_names = [HOST_NAMES[host_form](host) for host in range(1, NUM_HOSTS + 1)]
    node_names = [NODE_NAMES[node_form](host) for host in range(1, NUM_HOSTS + 1)]
    entries = [
        kube_node(node) if number in lost else ENTRIES["Hostname"](node, host)
        for number, (node, host) in enumerate(zip(node_names, host_names, strict=True), 1)
    ]
    found = observe_named(source, host_names, entries)
    (finding,) = (one for one in found.findings if one.kind is FindingKind.UNMATCHED_NODES)
    named = {port.device for port in finding.ports}
    assert named >= {node_names[number - 1] for number in lost}
    assert {name.lower() for name in named} >= {host_names[number - 1].lower() for number in lost}
    assert not named & {node_names[number - 1] for number in range(1, NUM_HOSTS + 1)} - {
        node_names[number - 1] for number in lost
    }
    numbers = {name_of(entry): host for host, entry in enumerate(entries, 1)}
    leaves = {hosts for tier, hosts in domains_of(found, numbers) if tier == 1}
    assert leaves == {hosts - lost for tier, hosts in EXPECTED[source] if tier == 1} - {frozenset()}
