"""Which node a name means: one table per rule, and laws over random lists."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from topology.identity.node_names import NameKey, NodeNames, build_node_names, list_weak_ids
from topology.model.ids import Id, IdKind


def names_of(listed: Mapping[str, Sequence[str]], others: Sequence[str] = ()) -> NodeNames:
    """Return the names of nodes, each with its host names; a name of digits is an address."""
    rows = [
        (node, [Id(IdKind.IP if name[0].isdigit() else IdKind.HOSTNAME, name) for name in names])
        for node, names in listed.items()
    ]
    return build_node_names(rows, others)


@pytest.mark.parametrize(
    ("listed", "host", "node"),
    [
        pytest.param({"n1": ()}, "n1", "n1", id="the name of the node"),
        pytest.param({"n1": ()}, " N1. ", "n1", id="another case, blanks and the dot of the root"),
        pytest.param({"10.0.4.1": ["gpu-1"]}, "gpu-1", "10.0.4.1", id="a host name"),
        pytest.param({"10.0.4.1": ["GPU-1"]}, "gpu-1", "10.0.4.1", id="a host name in capitals"),
        pytest.param({"n1": ["10.0.4.1"]}, "10.0.4.1", "n1", id="an address"),
        pytest.param({"n1": ["fd00::1"]}, "FD00::1", "n1", id="an IPv6 address"),
        pytest.param({"n1": ()}, "n1.example", "n1", id="a host with a domain, a node without"),
        pytest.param({"n1.example": ()}, "n1", "n1.example", id="a node with a domain, a host not"),
        pytest.param(
            {"a": ["n1.int.example", "n1.ext.example"]}, "n1", "a", id="a node with two domains"
        ),
        pytest.param({"n1.a": ()}, "n1.b", None, id="two domains"),
        pytest.param({"n1": ["n1.a"]}, "n1.b", None, id="a node that is in another domain"),
        pytest.param({"10.0.4.1": ()}, "10.0.9.9", None, id="addresses with one first number"),
        pytest.param({"n1.a": (), "n1.b": ()}, "n1.a", "n1.a", id="one of two full names"),
        pytest.param({"n1.a": (), "n1.b": ()}, "n1", None, id="the first label of two nodes"),
        pytest.param({"n1": (), "n1.a": ()}, "n1", "n1", id="the full name of one, label of two"),
        pytest.param({"a": ["h"], "b": ["h"]}, "h", None, id="a host name of two nodes"),
        pytest.param({"a": ["h"], "h": ()}, "h", "h", id="a node that is called so"),
        pytest.param({"a": ["h"], "h": ["h"]}, "h", "h", id="a node that is called so twice"),
        pytest.param({"a": ["h"], "h": ["a"]}, "h", None, id="nodes that exchanged host names"),
        pytest.param({"a": ["localhost"]}, "localhost", None, id="a default host name"),
        pytest.param({"a": ()}, "", None, id="no name"),
    ],
)
def test_it_finds_the_node_of(
    listed: Mapping[str, Sequence[str]], host: str, node: str | None
) -> None:
    assert names_of(listed).find(host) == node


@pytest.mark.parametrize(
    ("listed", "others", "host"),
    [
        pytest.param({"n1": ()}, ["n1.a", "n1.b"], "n1.a", id="two hosts have its first label"),
        pytest.param({"n1.a": ()}, ["n1.b"], "n1", id="a host of another domain may be meant"),
    ],
)
def test_a_first_label_of_several_hosts_means_none(
    listed: Mapping[str, Sequence[str]], others: Sequence[str], host: str
) -> None:
    assert names_of(listed, others).find(host) is None


def test_it_says_which_nodes_share_a_name() -> None:
    names = names_of({"a": ["h", "x.one"], "b": ["h", "x.two"], "c": ["y"]})
    assert [names.find_rivals(name) for name in ("h", "x", "y", "x.one")] == [
        ("a", "b"),
        ("a", "b"),
        (),
        (),
    ]
    assert names.find_rivals("h.example") == ("a", "b")


def test_names_of_other_devices_have_one_key_if_they_may_be_of_one_device() -> None:
    names = names_of({"n1": ()}, ["sw.a", "sw.b", "leaf.dc", "leaf"])
    assert names.key("leaf") == names.key("LEAF.dc") == NameKey("leaf", is_node=False)
    assert len({names.key(name) for name in ("sw", "sw.a", "sw.b", "leaf.other")}) == 4
    assert names.key("n1") == NameKey("n1", is_node=True)


LABELS = ["n1", "n2", "h1", "h2"]
NAMES = st.sampled_from([*LABELS, *(f"{label}.{at}" for label in LABELS for at in "ab")])
LISTS = st.dictionaries(NAMES, st.lists(NAMES, max_size=2), max_size=5)


@settings(max_examples=examples(400))
@given(LISTS, st.lists(NAMES, max_size=4), NAMES)
def test_a_name_means_a_node_only_if_no_other_node_may_be_meant(
    listed: Mapping[str, Sequence[str]], others: list[str], host: str
) -> None:
    found = names_of(listed, others).find(host)
    exact = {node for node, names in listed.items() if host in (node, *names)}
    if found is None:
        assert len(exact) != 1
        return
    if exact:
        assert exact == {found} or host == found
        return
    label = host.partition(".")[0]
    owners = {
        node
        for node, names in listed.items()
        if label in (one.partition(".")[0] for one in (node, *names))
    }
    own = {name for name in (found, *listed[found]) if name.partition(".")[0] == label}
    domains = {name for name in (*others, host) if name.partition(".")[0] == label and "." in name}
    assert (
        owners == {found} or label == found
    )  # the entry of another node lists the name of this one
    if "." in host:
        assert own == {label}
        assert domains == {host}
    else:
        assert domains <= own


@settings(max_examples=examples(200))
@given(LISTS, st.lists(NAMES, max_size=4), NAMES)
def test_renaming_all_nodes_changes_no_match(
    listed: Mapping[str, Sequence[str]], others: list[str], host: str
) -> None:
    """A node keeps its old name as a host name; the new names say nothing about hosts."""
    number = {node: f"10.0.0.{index}" for index, node in enumerate(listed, 1)}
    renamed = {number[node]: [node, *names] for node, names in listed.items()}
    found = names_of(listed, others).find(host)
    again = names_of(renamed, others).find(host)
    if found is not None and again is None:  # only the node's own name settled a clash
        assert any(name in listed and name != node for node in listed for name in listed[node])
    else:
        assert again == (found and number[found])


def test_it_lists_the_ids_that_join_no_device_by_themselves() -> None:
    ids = (Id(IdKind.HOSTNAME, "h"), Id(IdKind.MAC, "02:00:00:00:00:01"))
    assert list_weak_ids(ids) == [ids[0]]
