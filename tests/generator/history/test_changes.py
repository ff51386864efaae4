"""What differs between two trees, which findings came and went, and which generations are kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from generator.history.findings import FindingAge, compare_findings, decode_finding, encode_finding
from generator.history.retention import DAY_S, KEPT_S, MINUTE_S, choose_kept
from generator.history.tree_changes import (
    OUTSIDE,
    ChangeCounts,
    PlaceChange,
    TreePart,
    compare_names,
    compare_trees,
    count_changes,
    show_before,
)
from topology.model.facts import Finding, FindingKind, PortName, Severity
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree


def tree_of(
    leaves: dict[str, tuple[str, ...]], *, unplaced: tuple[str, ...] = (), spine: str = "spine"
) -> TopologyTree:
    specs = [
        DomainSpec(name, 1, spine, nodes=nodes, switches=(f"switch-{name}",))
        for name, nodes in leaves.items()
    ]
    rows = [Unplaced(node, "no cable") for node in unplaced]
    return build_tree([*specs, DomainSpec(spine, 2, None)], tiers=("leaf", "spine"), unplaced=rows)


def finding_of(device: str, port: str = "1", message: str = "is down") -> Finding:
    return Finding(FindingKind.DOWN_PORT, device, port, severity=Severity.WARNING, message=message)


BEFORE = tree_of({"a": ("n1", "n2"), "b": ("n3",)})


def test_equal_trees_have_no_changes() -> None:
    assert compare_trees(BEFORE, tree_of({"b": ("n3",), "a": ("n2", "n1")})) == ()


def test_it_names_what_came_went_and_moved() -> None:
    after = tree_of({"a": ("n1",), "c": ("n2", "n4")}, unplaced=("n3",))
    changes = compare_trees(BEFORE, after)
    assert changes == (
        PlaceChange(TreePart.DOMAIN, "b", "spine", None),
        PlaceChange(TreePart.DOMAIN, "c", None, "spine"),
        PlaceChange(TreePart.SWITCH, "switch-b", "b", None),
        PlaceChange(TreePart.SWITCH, "switch-c", None, "c"),
        PlaceChange(TreePart.NODE, "n2", "a", "c"),
        PlaceChange(TreePart.NODE, "n3", "b", OUTSIDE),
        PlaceChange(TreePart.NODE, "n4", None, "c"),
    )
    assert count_changes(changes, TreePart.NODE) == ChangeCounts(added=1, removed=0, moved=2)


def test_a_leaf_below_another_spine_is_one_change_of_a_domain() -> None:
    after = tree_of({"a": ("n1", "n2"), "b": ("n3",)}, spine="other")
    parts = [(change.part, change.name) for change in compare_names(BEFORE, after)]
    assert parts == [(TreePart.DOMAIN, name) for name in ("a", "b", "other", "spine")]


def test_a_domain_that_kept_its_nodes_is_renamed_and_its_nodes_have_not_moved() -> None:
    after = tree_of({"new": ("n1", "n2"), "b": ("n3",)})
    changes = compare_trees(BEFORE, after)
    assert changes == (
        PlaceChange(TreePart.DOMAIN, "new", "spine", "spine", former_name="a"),
        PlaceChange(TreePart.SWITCH, "switch-a", "new", None),
        PlaceChange(TreePart.SWITCH, "switch-new", None, "new"),
    )
    assert count_changes(changes, TreePart.DOMAIN) == ChangeCounts(renamed=1)
    assert show_before(changes[0]) == "named a"


def test_a_renamed_spine_moves_none_of_its_leaves() -> None:
    after = tree_of({"a": ("n1", "n2"), "b": ("n3",)}, spine="other")
    assert compare_trees(BEFORE, after) == (
        PlaceChange(TreePart.DOMAIN, "other", OUTSIDE, OUTSIDE, former_name="spine"),
    )


def test_a_domain_whose_nodes_changed_too_is_another_domain() -> None:
    changes = compare_trees(BEFORE, tree_of({"new": ("n1",), "b": ("n2", "n3")}))
    assert count_changes(changes, TreePart.DOMAIN) == ChangeCounts(added=1, removed=1)
    assert count_changes(changes, TreePart.NODE) == ChangeCounts(moved=2)


def test_a_name_that_another_domain_takes_is_no_rename() -> None:
    changes = compare_trees(BEFORE, tree_of({"b": ("n1", "n2"), "a": ("n3",)}))
    assert count_changes(changes, TreePart.NODE) == ChangeCounts(moved=3)


def test_by_name_the_nodes_of_a_renamed_domain_leave_it() -> None:
    changes = compare_names(BEFORE, tree_of({"new": ("n1", "n2"), "b": ("n3",)}))
    assert count_changes(changes, TreePart.NODE) == ChangeCounts(moved=2)


@given(st.permutations(["a", "b", "c", "d"]))
def test_new_names_alone_move_no_node(names: list[str]) -> None:
    leaves = {"a": ("n1", "n2"), "b": ("n3",), "c": ("n4",)}
    after = {f"new-{name}": nodes for name, nodes in zip(names, leaves.values(), strict=False)}
    changes = compare_trees(tree_of(leaves), tree_of(after))
    assert count_changes(changes, TreePart.NODE) == ChangeCounts()
    assert count_changes(changes, TreePart.DOMAIN) == ChangeCounts(renamed=3)


def test_a_finding_stays_the_same_if_only_its_message_changes() -> None:
    before = [finding_of("a", message="for 1 h"), finding_of("b"), finding_of("b", "2")]
    after = [finding_of("a", message="for 2 h"), finding_of("b", "2"), finding_of("c")]
    changes = compare_findings(before, after)
    assert changes.new == (after[2],)
    assert changes.lasting == (after[0], after[1])
    assert changes.gone == (before[1],)
    assert changes.of(FindingAge.GONE) == changes.gone


def test_a_finding_survives_the_file() -> None:
    port, other = PortName("a\x1b", "1"), PortName("b", "2")
    whole = Finding(
        FindingKind.SWAPPED_CABLE,
        "a\x1b",
        None,
        severity=Severity.ERROR,
        message="<b>",
        ports=(port, other),
        swap=((port, other),),
        since="2026-11-01T00:00:00Z",
    )
    assert decode_finding(encode_finding(whole)) == whole


TIMES = st.lists(st.integers(0, 3 * KEPT_S), max_size=60)


@given(TIMES, st.integers(0, KEPT_S))
def test_it_keeps_the_present_and_a_state_for_every_kept_day(times: list[int], age: int) -> None:
    now = max(times, default=0) + age
    kept = choose_kept(times, now)
    assert kept == sorted(set(kept) & set(times))
    assert not times or max(times) in kept
    for time in times:
        # The state at the end of a day is known to a day, whatever was forgotten.
        ends = [one for one in kept if one >= time and one // DAY_S == time // DAY_S]
        assert ends or now - time >= KEPT_S - DAY_S
    assert choose_kept(kept, now) == kept


def test_a_cable_that_flaps_for_a_month_does_not_erase_the_year() -> None:
    now = 1_700_000_000
    year = [now - day * DAY_S for day in range(365, 31, -1)]
    flaps = list(range(now - 30 * DAY_S, now, MINUTE_S // 2))
    kept = choose_kept([*year, *flaps], now)
    assert set(year) <= set(kept)
    assert len(kept) <= len(year) + DAY_S // MINUTE_S + 31 * 24 + 2
