"""`toponaut diff`: the document, the exit code, and silences; also the silences of `findings`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import PAIRS, RAILS, Ran, Scene, run
from tests.shared_samples import SAMPLES, needs_samples

LATER = "2099-12-31"


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene.of(tmp_path_factory.mktemp("pairs"), PAIRS)


@pytest.fixture(scope="module")
def plan(pairs: Scene) -> list[str]:
    """Return the lines of a plan that the scene follows, without the header."""
    ran = run("diff", *sources(pairs), "--cabling", write(pairs, "x,1,y,1"), "-o", "json")
    return [
        ",".join((row["a"]["device"], row["a"]["port"], row["b"]["device"], row["b"]["port"]))
        for row in ran.document["unplanned"]
    ]


def sources(scene: Scene) -> tuple[object, ...]:
    return ("--reports", scene.reports())


def write(scene: Scene, *lines: str, name: str = "plan.csv") -> Path:
    return scene.write(name, "\n".join(("device_a,port_a,device_b,port_b", *lines)) + "\n")


def diff(scene: Scene, lines: list[str], *words: object) -> Ran:
    return run("diff", *sources(scene), "--cabling", write(scene, *lines), *words)


def swapped(lines: list[str]) -> list[str]:
    """Return a plan in which two cables have exchanged one end."""
    first, second = (line.split(",") for line in lines[:2])
    return [",".join(first[:2] + second[2:]), ",".join(second[:2] + first[2:]), *lines[2:]]


def test_it_finds_no_difference_if_all_cables_are_as_planned(pairs: Scene, plan: list[str]) -> None:
    ran = diff(pairs, plan, "-o", "json", "--check")
    assert ran.code == ExitCode.OK, ran.err
    assert ran.document == {
        "apiVersion": "toponaut.io/v1alpha1",
        "kind": "CablingDiff",
        "asPlanned": len(plan),
        "rows": [],
        "moves": [],
        "silenced": [],
        "expired": [],
        "unplanned": [],
        "leftOut": {"rows": 0, "moves": 0, "silenced": 0, "unplanned": 0},
    }
    assert diff(pairs, plan).out == f"no differences, {len(plan)} cables as planned\n"


def test_it_lists_the_moves_that_repair_a_swap(pairs: Scene, plan: list[str]) -> None:
    ran = diff(pairs, swapped(plan), "-o", "json")
    assert ran.code == ExitCode.OK
    (row,) = ran.document["rows"]
    assert row["kind"] == "swapped"
    assert sorted(cable["line"] for cable in row["planned"]) == [2, 3]
    (move,) = ran.document["moves"]
    assert move["op"] == "exchange"
    assert (move["from"], move["to"]) == (move["cable"]["b"], move["other"]["b"])


def test_it_counts_the_rows_of_json_that_are_left_out(pairs: Scene, plan: list[str]) -> None:
    lines = [*plan, *(f"absent-{number},1,absent-{number},2" for number in range(350))]
    part = diff(pairs, lines, "-o", "json").document
    whole = diff(pairs, lines, "-o", "json", "--all").document
    assert len(whole["rows"]) >= 350
    assert set(whole["leftOut"].values()) == {0}
    for table, num_left_out in part["leftOut"].items():
        assert part[table] == whole[table][:100]
        assert len(part[table]) + num_left_out == len(whole[table])


def test_it_prints_the_moves_in_order(pairs: Scene, plan: list[str]) -> None:
    lines = [*swapped(plan)[:-1], "gone01,eth0,gone02,eth0"]
    out = diff(pairs, lines).out
    assert "swapped" in out
    assert "\n1     exchange the plugs in " in out
    assert "unknown-device" in out
    assert "not in the plan, no fault:" in out
    assert out.endswith(f"2 differences, {len(plan) - 3} cables as planned, 1 move\n")


def test_it_says_which_cables_to_add_and_to_remove(pairs: Scene, plan: list[str]) -> None:
    near, far = (line.split(",") for line in (plan[0], plan[-1]))
    joined = ",".join(near[:2] + far[:2])
    lines = [joined, *plan[1:-1], ",".join((*near[2:3], "new9", *far[2:3], "new9"))]
    ran = diff(pairs, lines)
    assert "remove the cable between " in ran.out
    assert "plug in a cable between " in ran.out
    moves = diff(pairs, lines, "-o", "json").document["moves"]
    assert {move["op"] for move in moves} == {"move", "add", "remove"}
    assert {move["to"] is None for move in moves if move["op"] != "move"} == {True}


def test_a_work_order_has_a_box_for_each_move(pairs: Scene, plan: list[str]) -> None:
    lines = [*swapped(plan)[:-1], "gone01,eth0,gone02,eth0"]
    text = diff(pairs, lines, "-o", "work-order", "--site", "Hall 3").out
    assert text.startswith("# Work order: cables\n\nHall 3, ")
    assert "1 step for 1 of 2 differences." in text
    assert text.count("| ☐ |") == 1
    assert "1 difference gives no move \\(unknown-device\\): see toponaut diff." in text
    leaf = plan[0].split(",")[0]
    racks = pairs.write("racks.csv", f"device,rack\n{leaf},r7\ngone,r9\n")
    ran = diff(pairs, lines, "-o", "work-order-csv", "--racks", racks)
    assert len(ran.out.splitlines()) == 2
    assert f",r7,,{leaf}," in ran.out
    assert "racks: 1 name matches no device: gone\n" in ran.err
    assert diff(pairs, lines, "-o", "work-order-html").out.count("<td class=box>") == 1


def silences(scene: Scene, *entries: dict[str, str]) -> Path:
    return scene.write("silences.yaml", yaml.safe_dump(list(entries)))


def known(kind: str, device: str, **more: str) -> dict[str, str]:
    return {"kind": kind, "device": device, "reason": "we know", "until": LATER} | more


@pytest.mark.parametrize(
    ("until", "code"), [(LATER, ExitCode.OK), ("2020-01-01", ExitCode.CHECK_FAILED)]
)
def test_it_silences_a_difference_until_the_end_date(
    pairs: Scene, plan: list[str], until: str, code: ExitCode
) -> None:
    file = silences(pairs, known("swapped", plan[0].split(",")[0], until=until))
    ran = diff(pairs, swapped(plan), "-o", "json", "--check", "--silence", file)
    assert ran.code == code
    document = ran.document
    if code is ExitCode.OK:
        (row,) = document["silenced"]
        assert (row["kind"], row["reason"], row["until"]) == ("swapped", "we know", LATER)
        assert (document["rows"], document["moves"], document["expired"]) == ([], [], [])
    else:
        assert len(document["rows"]) == 1
        assert document["expired"][0]["until"] == until
        assert "silence expired: swapped of " in ran.err


def test_it_shows_silenced_differences_with_the_reason(pairs: Scene, plan: list[str]) -> None:
    file = silences(pairs, known("swapped", plan[0].split(",")[0]))
    out = diff(pairs, swapped(plan), "--silence", file).out
    assert "silenced:\n" in out
    assert "we know" in out
    assert out.endswith("cables as planned, 1 silenced\n")


def test_it_exits_with_3_if_a_line_was_skipped(pairs: Scene, plan: list[str]) -> None:
    ran = diff(pairs, ["a,1,b", *plan], "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert ran.document["asPlanned"] == len(plan)
    assert "plan.csv:2: expected 4 columns" in ran.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(["--cabling", "plan.csv"], "name a source", id="no source"),
        pytest.param(["--reports", "."], "--cabling", id="no plan"),
        pytest.param(
            ["--cabling", "plan.csv", "--reports", ".", "--title=x"],
            "apply to work orders only",
            id="a title without a work order",
        ),
        pytest.param(
            ["--against=labels", "--reports", ".", "--output=work-order"],
            "apply to --cabling only",
            id="a work order without a plan",
        ),
        pytest.param(
            ["--cabling", "plan.csv", "--hypernodes", "."], "have no cables", id="HyperNodes"
        ),
        pytest.param(
            ["--cabling", "empty", "--reports", "."],
            "got an empty file",
            id="an empty plan",
        ),
        pytest.param(
            ["--cabling", "plan.csv", "--reports", ".", "--silence", "bad.yaml"],
            "bad.yaml: silence 1: until is missing",
            id="a silence without an end date",
        ),
    ],
)
def test_it_refuses(tmp_path: Path, words: list[str], says: str) -> None:
    files = {
        "plan.csv": "device_a,port_a,device_b,port_b\na,1,b,1\n",
        "empty": "",
        "bad.yaml": "[{kind: missing, device: a, reason: b}]",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = [word if word.startswith("--") else tmp_path / word for word in words]
    ran = run("diff", *paths)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert says in ran.err


OWN16 = SAMPLES / "fabric" / "own16"


def own16(cabling: Path) -> Ran:
    return run("diff", "--lldpcli", OWN16, "--cabling", cabling, "-o", "json")


@needs_samples
def test_it_finds_a_real_fabric_as_planned() -> None:
    ran = own16(OWN16 / "cabling.csv")
    assert ran.code == ExitCode.OK, ran.err
    assert (ran.document["rows"], ran.document["unplanned"]) == ([], [])
    assert ran.document["asPlanned"] == 27


@needs_samples
def test_it_repairs_two_exchanged_ports_of_a_real_fabric_with_one_exchange(tmp_path: Path) -> None:
    lines = (OWN16 / "cabling.csv").read_text().strip().split("\n")
    plan = tmp_path / "plan.csv"
    plan.write_text("\n".join([lines[0], *swapped(lines[1:])]))
    document = own16(plan).document
    assert [row["kind"] for row in document["rows"]] == ["swapped"]
    assert [move["op"] for move in document["moves"]] == ["exchange"]


def findings(scene: Scene, *words: object) -> Any:  # noqa: ANN401 - a document
    return run("findings", "--lldpcli", scene.captures(), *words, "-o", "json").document


def test_input_without_cables_is_one_line_with_what_to_collect(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    reports = scene.reports()
    for file in reports.glob("*sweep*"):
        file.unlink()
    plan = write(scene, *(f"{host},mlx5_0/1,leaf-1,{at}" for at, host in enumerate(scene.hosts)))
    words = ("diff", "--reports", reports, "--cabling", plan)
    ran = run(*words, "--check")
    assert ran.code == ExitCode.CHECK_FAILED
    assert ran.out.count("\n") == 1
    assert ran.out.startswith("the plan lists 16 cables; this input shows none")
    assert run(*words, "--all").out.count("unknown-device") == 16
    assert len(run(*words, "-o", "json").document["rows"]) == 16


def test_it_silences_findings_in_the_same_way(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    before = findings(scene)
    first = before[0]
    file = silences(scene, known(first["kind"], first["subject"]["device"]))
    after = findings(scene, "--silence", file)
    assert len(after) == len(before)
    silenced = [row for row in after if "silenced" in row]
    assert {(row["kind"], row["subject"]["device"]) for row in silenced} == {
        (first["kind"], first["subject"]["device"])
    }
    assert silenced[0]["silenced"] == {"reason": "we know", "until": LATER}
    assert [row for row in before if row not in after] == [
        {key: value for key, value in row.items() if key != "silenced"} for row in silenced
    ]
    text = run("findings", "--lldpcli", scene.captures(), "--silence", file).out
    assert f"we know (until {LATER})" in text
    assert text.endswith(f"{len(silenced)} silenced\n")


@pytest.mark.parametrize("words", [("--plane", "storage"), ("--planes", "planes.yaml")])
def test_it_refuses_planes_because_a_plan_has_the_cables_of_all_networks(
    words: tuple[str, str], pairs: Scene, plan: list[str]
) -> None:
    option, value = words
    given = pairs.write(value, "planes: []\n") if option == "--planes" else value
    ran = diff(pairs, plan, option, given)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "give no --planes and no --plane" in ran.err
