"""Quantities are exact from the text to the answer: millicores of cpu, base units of the rest."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.placement.cluster.nodes import NodeSpec
from generator.placement.engine import place
from generator.placement.quantities import (
    ceil_quantity,
    count_capacity,
    count_request,
    count_units,
    parse_amount,
    parse_exact_amount,
    render_quantities,
)
from tests.effort import examples
from tests.generator.placement.documents import cluster, racks, request
from topology.model.errors import PlacementRequestError

UNITS = {"": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000),
         "k": Fraction(1000), "Ki": Fraction(1024), "Mi": Fraction(2**20)}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        ("8", "8"),
        (8, "8"),
        (7.9, "7.9"),
        ("63850m", "63.85"),
        ("2k", "2000"),
        ("1Ki", "1024"),
        ("16Gi", str(16 * 2**30)),
        ("1.5Gi", str(3 * 2**29)),
        ("2E", "2e18"),
        ("2e3", "2000"),
        ("1E3", "1000"),
        (".5M", "500000"),
        ("1.", "1"),
        ("100n", "1e-7"),
        ("0.1n", "1e-9"),
        (" 4 ", "4"),
        ("+4", "4"),
        ("0", "0"),
    ],
)
def test_it_reads_a_quantity_as_kubernetes_does(value: object, amount: str) -> None:
    assert parse_amount(value) == Decimal(amount)


@pytest.mark.parametrize(
    "value",
    ["", "Gi", "eight", "-1", "1Kib", "1i", "1 Gi", "1_000", "NaN", "sNaN", "Infinity", "1e999",
     "1e9999999999", "9999999999E", "٣", "0x10", "1" * 5000, True, None, [8], float("inf"),
     float("nan")],
    ids=repr,
)  # fmt: skip
def test_it_refuses_as_a_quantity(value: object) -> None:
    with pytest.raises(ValueError, match="expected a quantity"):
        parse_amount(value)


@given(st.text(max_size=12) | st.floats() | st.integers())
@settings(max_examples=examples(200))
def test_it_reads_any_quantity_or_names_the_expected_form(value: object) -> None:
    try:
        assert parse_amount(value) >= 0
    except ValueError as error:
        assert str(error).startswith("expected a quantity")  # noqa: PT017 - either is right


@pytest.mark.parametrize(
    ("resource", "text", "on_a_node", "for_a_pod"),
    [
        pytest.param("cpu", "8", 8000, 8000, id="cores are thousands of millicores"),
        pytest.param("cpu", "7900m", 7900, 7900, id="millicores are exact"),
        pytest.param("cpu", "100500u", 100, 101, id="a fraction of a millicore"),
        pytest.param("cpu", "1n", 0, 1, id="the least that Kubernetes keeps"),
        pytest.param("memory", "1500m", 1, 2, id="a fraction of a byte"),
        pytest.param("memory", "527954676Ki", 527954676 * 1024, 527954676 * 1024, id="Ki"),
        pytest.param("memory", "0.5Mi", 2**19, 2**19, id="half a Mi"),
        pytest.param("nvidia.com/gpu", "7.9", 7, 8, id="a fraction of a device"),
        pytest.param("slots", f"0.{'9' * 60}", 0, 1, id="more digits than a double has"),
        pytest.param("memory", f"1.{'0' * 60}1", 1, 2, id="a fraction in the sixtieth digit"),
        pytest.param("memory", str(2**62), 2**62, 2**62, id="the largest"),
    ],
)
def test_it_rounds_nodes_down_and_pods_up(
    resource: str, text: str, on_a_node: int, for_a_pod: int
) -> None:
    assert count_capacity({resource: parse_exact_amount(text)}) == {resource: on_a_node}
    assert count_units(resource, parse_amount(text)) == for_a_pod


def test_it_counts_no_more_millicores_than_64_bits_hold() -> None:
    assert count_capacity({"cpu": parse_exact_amount("4E")}) == {"cpu": 2**62}


@given(st.integers(0, 2**53 // 1000 * 1000), st.sampled_from(["cpu", "memory", "slots"]))
def test_a_request_is_shown_as_it_is_read(units: int, resource: str) -> None:
    shown = render_quantities([(resource, units)])
    assert count_request(shown) == {resource: units}
    whole = ceil_quantity(shown[resource])
    assert 0 <= count_request({resource: whole})[resource] - units < 1000
    assert isinstance(shown[resource], int) or units % 1000


def ask(count: int, need: dict[str, Any], has: dict[str, Any], num_nodes: int = 1) -> Any:  # noqa: ANN401 - an answer
    capacity = count_capacity({name: parse_exact_amount(text) for name, text in has.items()})
    nodes = {f"n{index}": NodeSpec(f"n{index}", capacity) for index in range(num_nodes)}
    groups = [{"name": "w", "count": count, "min": 0, "request": need}]
    return place(cluster(racks(num_nodes), nodes), request(groups=groups, min=1))


def test_the_reason_is_in_the_units_of_the_request() -> None:
    nodes = {"n0": NodeSpec("n0", {"cpu": 63_850})}
    groups = [{"name": "w", "count": 1, "request": {"cpu": "63851m"}}]
    answer = place(cluster(racks(1), nodes), request(groups=groups))
    why = " ".join(verdict.needs for verdict in answer.domain_verdicts)
    assert "a pod needs 63851m cpu, and the largest node lists 63850m" in why


@pytest.mark.parametrize(
    ("need", "problem"),
    [
        pytest.param({"cpu": "many"}, "expected a quantity such as 8", id="a word"),
        pytest.param({"cpu": "-500m"}, "expected a quantity from 0", id="less than nothing"),
        pytest.param({"cpu": 0.5}, "expected an integer", id="a number with a point"),
        pytest.param({"cpu": True}, "expected an integer", id="a truth"),
        pytest.param({"memory": "16Ei"}, "expected a quantity from 0", id="too much memory"),
        pytest.param({"memory": "16Pi"}, "less than or equal", id="more than JSON keeps exact"),
        pytest.param({"cpu": 2**53}, "expected 0 to 9007199254740 of cpu", id="too many cores"),
    ],
)
def test_it_refuses_a_request(need: dict[str, Any], problem: str) -> None:
    with pytest.raises(PlacementRequestError, match=problem) as caught:
        request(groups=[{"name": "w", "count": 1, "request": need}])
    assert caught.value.field.startswith("groups[0].request")


def texts(most: int) -> st.SearchStrategy[str]:
    suffixes = st.sampled_from(sorted(UNITS))
    numbers = st.decimals(0, most, places=4)
    return st.builds(lambda number, suffix: f"{number:f}{suffix}", numbers, suffixes)


def exact(text: str) -> Fraction:
    number = text.rstrip("numkMKi")
    return Fraction(number) * UNITS[text[len(number) :]]


@given(st.dictionaries(st.sampled_from(["cpu", "memory"]), texts(20), min_size=1),
       st.dictionaries(st.sampled_from(["cpu", "memory"]), texts(200), min_size=2),
       st.integers(1, 12))  # fmt: skip
@settings(max_examples=examples(150))
def test_no_node_holds_more_than_it_has_in_exact_fractions(
    need: dict[str, str], has: dict[str, str], count: int
) -> None:
    answer = ask(count, need, has, num_nodes=2)
    for pods in Counter(node for node in answer.assignment.get("w", ()) if node).values():
        for name, text in need.items():
            assert pods * exact(text) <= exact(has[name])


@given(st.lists(st.integers(1, 9999), min_size=1, max_size=6), st.sampled_from(["cpu", "memory"]))
@settings(max_examples=examples(40))
def test_pods_that_fill_a_node_exactly_are_placed(parts: list[int], resource: str) -> None:
    suffix = {"cpu": "m", "memory": "Ki"}[resource]
    groups = [
        {"name": f"w{index}", "count": 1, "request": {resource: f"{part}{suffix}"}}
        for index, part in enumerate(parts)
    ]
    for missing in (0, 1):
        total = parse_exact_amount(f"{sum(parts) - missing}{suffix}")
        nodes = {"n0": NodeSpec("n0", count_capacity({resource: total}))}
        answer = place(cluster(racks(1), nodes), request(groups=groups))
        assert answer.is_feasible == (not missing)
