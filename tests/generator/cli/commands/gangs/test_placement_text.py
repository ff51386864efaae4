"""A placement as host lists: the order of the ranks, slots, ranges and refused names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.cli.commands.gangs.place import list_ranks
from generator.cli.host_lists import HostListFormat, render_host_list
from generator.placement.answer import Placement
from topology.model.errors import ConfigError
from topology.model.name_ranges import expand_names

NODES = st.lists(
    st.lists(st.none() | st.integers(0, 200).map("n{}".format), max_size=8),
    max_size=4,
)


def placed(*groups: list[str | None]) -> Placement:
    assignment = {f"g{at}": tuple(nodes) for at, nodes in enumerate(groups)}
    return Placement(
        is_feasible=True, assignment=assignment, tier="leaf", objective={}, is_proved=True
    )


GANG = placed(["n1", "n1", "n3", None], ["n2", "n4"])


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (HostListFormat.HOSTFILE, "n1 slots=2\nn3 slots=1\nn2 slots=1\nn4 slots=1\n"),
        (HostListFormat.HOSTFILE_MPICH, "n1:2\nn3:1\nn2:1\nn4:1\n"),
        (HostListFormat.NODELIST, "n[1,3,2,4]\n"),
        (HostListFormat.SLURM_HOSTFILE, "n1\nn1\nn3\nn2\nn4\n"),
        (
            HostListFormat.RANKFILE,
            (
                "rank 0=n1 slot=0\nrank 1=n1 slot=1\nrank 2=n3 slot=0\nrank 4=n2 slot=0\n"
                "rank 5=n4 slot=0\n"
            ),
        ),
        (HostListFormat.RANKS, "0 n1\n1 n1\n2 n3\n4 n2\n5 n4\n"),
    ],
)
def test_it_lists_the_nodes_in_the_order_of_the_ranks(chosen: HostListFormat, text: str) -> None:
    assert render_host_list(list_ranks(GANG), chosen) == (text, ())


def test_it_prints_nothing_without_nodes() -> None:
    assert {
        render_host_list(list_ranks(placed([None])), chosen).text for chosen in HostListFormat
    } == {""}


def test_it_names_nodes_whose_ranks_are_apart() -> None:
    hosts = render_host_list(
        list_ranks(placed(["n1", "n2", "n1", "n2", "n1"])), HostListFormat.HOSTFILE
    )
    assert hosts == ("n1 slots=3\nn2 slots=2\n", ("n1", "n2"))


@given(NODES)
def test_every_format_has_every_rank(groups: list[list[str | None]]) -> None:
    placement = placed(*groups)
    ranks = [row.node for row in list_ranks(placement)]
    flat = [node for group in groups for node in group]
    assert all(flat[row.rank] == row.node for row in list_ranks(placement))
    slots = [
        row.rsplit(":", 1)
        for row in render_host_list(
            list_ranks(placement), HostListFormat.HOSTFILE_MPICH
        ).text.splitlines()
    ]
    assert {name: int(num) for name, num in slots} == {name: ranks.count(name) for name in ranks}
    listed = render_host_list(list_ranks(placement), HostListFormat.NODELIST).text.strip()
    assert list(expand_names(listed)) == list(dict.fromkeys(ranks))


@pytest.mark.parametrize("name", ["a b", "a,b", "a:2", "n[1-2]", "#n", "", "a\nb", "-n", "\x1b"])
def test_it_refuses_names_that_read_as_something_else(name: str) -> None:
    for chosen in HostListFormat:
        with pytest.raises(ConfigError, match="cannot hold") as caught:
            render_host_list(list_ranks(placed([name])), chosen)
        assert str(caught.value).isprintable()
