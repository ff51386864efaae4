"""`parse_cabling` detects the form by its content and skips bad lines with an error."""

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.effort import examples
from tests.golden import Golden
from tests.shared_samples import SAMPLES, needs_samples
from tests.topology.sources.damage import damaged
from tests.topology.sources.plain import case_id, cases, expected_text
from topology.model.cabling_plan import CablingPlan, PlannedCable
from topology.sources.cabling.formats import parse_cabling

HEADER = "device_a,port_a,device_b,port_b\n"
NAMES = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "Zs"), exclude_characters="#"),
    min_size=1,
    max_size=8,
).filter(lambda name: name == name.strip() and name.isprintable())


def plan_of(text: str) -> CablingPlan:
    return parse_cabling(text.encode(), source="plan")


def ends(plan: CablingPlan) -> list[tuple[str, ...]]:
    return [cable[:4] for cable in plan.cables]


@pytest.mark.parametrize("path", cases("cabling"), ids=case_id)
def test_it_reads_a_plan_as_expected(path: Path, golden: Golden) -> None:
    plan = parse_cabling(path.read_bytes(), source=path.name)
    golden.check(path.with_name("expected.json"), expected_text(plan))


@needs_samples
def test_it_reads_every_line_of_a_real_plan() -> None:
    raw = (SAMPLES / "fabric" / "own16" / "cabling.csv").read_bytes()
    plan = parse_cabling(raw)
    assert (plan.form, plan.errors) == ("csv", ())
    assert len(plan.cables) == len(raw.decode().strip().split("\n")) - 1


@pytest.mark.parametrize(
    ("text", "form"),
    [
        pytest.param(HEADER, "csv", id="own columns"),
        pytest.param("Device B;port B;PORT_A;device a\n", "csv", id="own columns, any order"),
        pytest.param("port_a\tdevice_a\tport_b\tdevice_b", "csv", id="own columns with tabs"),
        pytest.param('"device_a","port_a","device_b","port_b"\r\n', "csv", id="quoted titles"),
        pytest.param(f"\n# plan\n{HEADER}", "csv", id="a comment before the header"),
        pytest.param(f"{HEADER.strip()}{',' * 900}\n", "csv", id="many columns"),
        pytest.param(f"{HEADER.strip()}{',' * 9000}\n", "", id="more columns than any table has"),
        pytest.param(
            "Label,Device A,Termination A,Device B,Termination B",
            "netbox-csv",
            id="NetBox's titles",
        ),
        pytest.param("[]", "netbox-json", id="a list"),
        pytest.param('  {"results": []}', "netbox-json", id="an answer of the API"),
        pytest.param("graph G {\n}", "dot", id="a graph"),
        pytest.param('// x\nstrict digraph "a"\n{}', "dot", id="a graph after a comment"),
        pytest.param("A b\n\tP1 -4X-14G-> C d P2\n", "ibdm", id="an ibdm topology file"),
        pytest.param("", "", id="nothing"),
        pytest.param("node01,eth0,leaf01,swp1\n", "", id="columns without titles"),
        pytest.param('Switch 36 "S-0002"\n[1] "H-01"[1]\n', "", id="a sweep"),
    ],
)
def test_it_detects_the_form_by_its_content(text: str, form: str) -> None:
    plan = plan_of(text)
    assert plan.form == form
    assert bool(plan.errors) == (form == "")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        pytest.param("a,1,b", "expected 4 columns", id="a short row"),
        pytest.param("a,,b,2", "is missing", id="an empty port"),
        pytest.param("a,1,a,1", "both ends are the same port", id="a port with itself"),
        pytest.param("a,1,A,1", "both ends are the same port", id="one port in two letter cases"),
        pytest.param(
            "x,1,c,2",
            "already has another cable, between x port 1 and y port 1",
            id="a port with two cables",
        ),
        pytest.param("a,\x1b[31m,b,2", "not printable", id="control characters"),
        pytest.param(f"{'a' * 256},1,b,2", "too long", id="a name longer than any system's"),
        pytest.param('"a,1,b,2', "expected 4 columns", id="an unclosed quote"),
    ],
)
def test_it_skips_only_the_bad_line(row: str, says: str) -> None:
    plan = plan_of(f"{HEADER}x,1,y,1\n{row}\np,1,q,1\n")
    assert ends(plan) == [("x", "1", "y", "1"), ("p", "1", "q", "1")]
    (error,) = plan.errors
    assert (error.source, error.line) == ("plan", 3)
    assert says in error.problem
    assert error.excerpt.isprintable()


def test_it_skips_only_the_line_with_invalid_bytes() -> None:
    plan = parse_cabling(HEADER.encode() + b"a,\xff,b,2\nc,1,d,1\n")
    assert ends(plan) == [("c", "1", "d", "1")]
    assert [error.line for error in plan.errors] == [2]


def test_it_counts_a_cable_written_from_both_ends_once() -> None:
    plan = plan_of(f"{HEADER}a,1,b,2\nb,2,a,1\nA,1,B,2\n")
    assert (plan.cables, plan.errors) == ((PlannedCable("a", "1", "b", "2", 2),), ())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("{", "not JSON", id="broken"),
        pytest.param("[" * 100_000, "not JSON", id="nested without end"),
        pytest.param('{"results": 7}', "expected a list", id="no list of results"),
        pytest.param(
            '{"detail": "Invalid token"}', "no termination type on side a", id="an error of NetBox"
        ),
        pytest.param("[7]", "expected an object", id="a number for a cable"),
        pytest.param('{"next": "http://x/", "results": []}', "one page", id="one page of many"),
        pytest.param(f"[{'9' * 5000}]", "not JSON", id="a number of thousands of digits"),
        pytest.param(
            '[{"termination_a_type": "dcim.interface", "termination_a": 7}]',
            "no name",
            id="an interface that is a number",
        ),
    ],
)
def test_it_says_what_is_wrong_with_json(text: str, says: str) -> None:
    (error,) = plan_of(text).errors
    assert says in error.problem


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('graph G {"' + r"\"" * 50_000, id="one endless quoted name"),
        pytest.param("graph G {" + "/*" * 200_000, id="comments that never end"),
        pytest.param("graph G {" + "a-" * 200_000, id="one endless word"),
        pytest.param("graph G {" + "[" * 200_000, id="lists within lists"),
        pytest.param("graph " * 60_000, id="a head that repeats"),
        pytest.param("A b\n P -> C d E\n x " + "-" * 400_000, id="an endless arrow"),
        pytest.param(HEADER + '"\n' * 50_000, id="quotes only"),
        pytest.param(HEADER + "a," * 200_000, id="one endless row"),
    ],
)
def test_it_takes_linear_time_for(text: str) -> None:
    assert plan_of(text).cables in ((), (PlannedCable("b", "P", "d", "E", 2),))


@given(st.lists(st.tuples(NAMES, NAMES, NAMES, NAMES), max_size=5))
def test_it_reads_back_names_that_are_written_in_quotes(rows: list[tuple[str, ...]]) -> None:
    numbered = [
        tuple(f"{index}{end}{name}" for end, name in enumerate(row))
        for index, row in enumerate(rows)
    ]
    quoted = [",".join('"' + name.replace('"', '""') + '"' for name in row) for row in numbered]
    plan = plan_of(HEADER + "\n".join(quoted))
    assert (ends(plan), plan.errors) == (numbered, ())
    drawn = "\n".join(
        f'"{_escaped(a)}":"{_escaped(p)}" -- "{_escaped(b)}":"{_escaped(q)}"'
        for a, p, b, q in numbered
    )
    plan = plan_of(f"graph G {{\n{drawn}\n}}\n")
    assert (ends(plan), plan.errors) == (numbered, ())
    api_cables = [
        {
            f"{side}_terminations": [
                {
                    "object_type": "dcim.interface",
                    "object": {"name": port, "device": {"name": name}},
                }
            ]
            for side, name, port in (("a", *row[:2]), ("b", *row[2:]))
        }
        for row in numbered
    ]
    plan = plan_of(json.dumps(api_cables))
    assert (ends(plan), plan.errors) == (numbered, ())


def _escaped(name: str) -> str:
    return name.replace("\\", r"\\").replace('"', r"\"")


@limits(max_examples=examples(150))
@given(st.binary(max_size=200) | damaged(cases("cabling")))
def test_it_never_raises_and_keeps_every_port_to_one_cable(raw: bytes) -> None:
    plan = parse_cabling(raw, source="plan")
    used_ports = [(end.device.casefold(), end.port) for cable in plan.cables for end in cable.ends]
    assert len(used_ports) == len(set(used_ports))
    assert all(error.source == "plan" and str(error).isprintable() for error in plan.errors)
    assert plan.form or not plan.cables


def test_it_counts_the_cables_of_a_json_document_and_not_its_lines() -> None:
    def side(device: str, port: str) -> list[dict[str, object]]:
        interface = {"name": port, "device": {"name": device}}
        return [{"object_type": "dcim.interface", "object": interface}]

    cables = [
        {"a_terminations": side("a", "1"), "b_terminations": side(device, "1")}
        for device in ("b", "c")
    ]
    plan = plan_of(json.dumps(cables, indent=2))
    assert ends(plan) == [("a", "1", "b", "1")]
    assert [str(error).partition(" a port")[0] for error in plan.errors] == ["plan: cable 2:"]


def test_a_cable_takes_little_memory_beside_its_line() -> None:
    rows = [f"host-{at:05},p1,leaf-{at // 32:04},swp{at % 32}" for at in range(5000)]
    raw = "\n".join(("device_a,port_a,device_b,port_b", *rows)).encode()
    parse_cabling(raw)
    tracemalloc.start()
    try:
        plan = parse_cabling(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(plan.cables) == 5000
    assert len({id(cable.device_b) for cable in plan.cables}) == 157
    assert peak < 750 * len(plan.cables)


@pytest.mark.parametrize("again", ["a,1,b,1", "b,1,a,1", "A,1,b,1"])
def test_a_cable_that_is_listed_again_counts_once(again: str) -> None:
    plan = parse_cabling(f"device_a,port_a,device_b,port_b\na,1,b,1\n{again}\n".encode())
    assert (len(plan.cables), plan.errors) == (1, ())
