"""What `toponaut findings` prints for people: one row for findings that say the same."""

import csv
import io
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from generator.cli.commands.fabric.findings import list_parts
from generator.cli.exit_codes import ExitCode
from generator.cli.output import print_csv, render_text
from tests.generator.scenes import PAIRS, RAILS, Scene, run
from topology.findings.silences import SilenceSplit
from topology.model.facts import Finding, FindingKind, PortName, Severity
from topology.model.name_ranges import expand_names


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    """The reports of three hosts of sixteen, and the list of all nodes."""
    scene = Scene.of(tmp_path_factory.mktemp("silent"), PAIRS)
    reports = scene.reports()
    for host in scene.hosts[3:]:
        (reports / f"{host}.yaml").unlink()
    return ("--reports", reports, "--nodes", scene.nodes())


def test_findings_that_say_the_same_are_one_row(sources: tuple[object, ...]) -> None:
    found = run("findings", *sources, "--kind", "silent-node")
    header, row, total = found.out.splitlines()
    assert header.split() == ["SEVERITY", "KIND", "COSTS", "SUBJECT", "WHAT", "TO", "DO"]
    assert len(expand_names(split_cells(row)[3])) == 13
    assert "13 findings like this (-o wide prints each): Node " in row
    assert split_cells(row)[2] == "13 nodes not seen"
    assert total == "13 findings of 1 cause: 13 warnings"
    first = run("findings", *sources, "--kind", "silent-node", "--top", 3).out.splitlines()
    assert first == ["Fix these first", header, row, "1 of 1 cause of 13 findings"]


def test_the_status_says_once_what_is_wrong_with_many_nodes(sources: tuple[object, ...]) -> None:
    lines = [line for line in run("status", *sources).out.splitlines() if "silent-node" in line]
    assert len(lines) == 1
    start = "  warning silent-node (13 nodes not seen): 13 findings like this: Node "
    assert lines[0].startswith(start)


def split_cells(row: str) -> list[str]:
    """Return the cells of a row of a table."""
    return re.split(r"  +", row)


def test_wide_and_json_have_every_finding(sources: tuple[object, ...]) -> None:
    wide = run("findings", *sources, "--kind", "silent-node", "-o", "wide")
    assert sum(line.startswith("warning ") for line in wide.out.splitlines()) == 13
    document = run("findings", *sources, "--kind", "silent-node", "-o", "json").document
    assert len(document) == 13


def test_two_findings_stay_two_rows() -> None:
    assert len(list_rows([find(SILENT, "node-1"), find(SILENT, "node-2")])) == 2


def test_the_ports_that_a_lost_switch_takes_down_are_one_row(tmp_path: Path) -> None:
    out = tmp_path / "fabric"
    words = ("--hosts", 16, "--rails", 4, "--radix", 16, "--lose-switch", 1, "--out", out)
    assert run("simulate", "fabric", *words).code == ExitCode.OK
    sources = ("--reports", out / "reports", "--nodes", out / "nodes.yaml", "--kind", "down-port")
    rows = run("findings", *sources, "-o", "json").document
    ports = {row["subject"]["port"] for row in rows}
    found = run("findings", *sources).out.splitlines()
    assert len(ports) == 1
    assert len(found) == 3
    nodes, port = split_cells(found[1])[3].split(" port ")
    assert {port} == ports
    assert expand_names(nodes) == tuple(row["subject"]["device"] for row in rows)
    assert "If these hosts share a switch, check the switch first." in found[1]


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    """The reports of a fabric with lost cables."""
    out = tmp_path_factory.mktemp("damaged") / "fabric"
    words = ("--hosts", 32, "--rails", 4, "--radix", 16, "--lose-links", "15%", "--out", out)
    assert run("simulate", "fabric", *words).code == ExitCode.OK
    return ("--reports", out / "reports", "--nodes", out / "nodes.yaml")


@pytest.fixture(scope="module")
def document(damaged: tuple[object, ...]) -> list[dict[str, Any]]:
    """All findings of that fabric."""
    found: list[dict[str, Any]] = run("findings", *damaged, "-o", "json").document
    return found


def test_many_rows_begin_with_a_summary(
    damaged: tuple[object, ...], document: list[dict[str, Any]]
) -> None:
    kinds = Counter(row["kind"] for row in document if row["severity"] == "warning")
    first, worst, blank, header, *_ = run("findings", *damaged).out.splitlines()
    shown = ", ".join(f"{kind} {num}" for kind, num in kinds.most_common())
    assert first == f"{kinds.total()} warnings: {shown}"
    assert worst.startswith("most findings: ")
    assert (blank, header.split()[0]) == ("", "SEVERITY")


def test_a_missing_link_of_a_port_that_is_down_is_not_a_row_of_its_own(
    damaged: tuple[object, ...], document: list[dict[str, Any]]
) -> None:
    down = {
        (row["subject"]["device"], row["subject"]["port"])
        for row in document
        if row["kind"] == "down-port"
    }
    following = [
        row
        for row in document
        if row["kind"] == "missing-link"
        and not down.isdisjoint((end["device"], end["port"]) for end in row["evidence"]["ports"])
    ]
    assert following
    text, wide = run("findings", *damaged).out, run("findings", *damaged, "-o", "wide").out
    note = f"; {len(following)} follow from another one (-o wide prints each)"
    total = text.splitlines()[-1]
    assert total.endswith(note)
    (num_findings, num_causes) = map(int, re.findall(r"(\d+) (?:findings|causes)", total))
    assert num_findings == len(document) >= num_causes + len(following)
    first = run("findings", *damaged, "--top", 2).out.splitlines()[-1]
    counts = f"2 of {num_causes} causes of {num_findings} findings"
    assert first == f"{counts} (toponaut findings prints all)"
    assert "follow from" not in wide
    assert all(row["message"] in wide and row["message"] not in text for row in following)


def test_filters_keep_what_they_name(
    damaged: tuple[object, ...], document: list[dict[str, Any]]
) -> None:
    severe = run("findings", *damaged, "--severity", "warning", "-o", "json").document
    assert severe == [row for row in document if row["severity"] == "warning"]
    device = document[0]["subject"]["device"]
    about = run("findings", *damaged, "--node", device, "-o", "json").document
    assert about == [
        row for row in document if device in {row["subject"]["device"], *ends_of(row["evidence"])}
    ]


def test_an_unknown_device_is_no_device_without_findings(damaged: tuple[object, ...]) -> None:
    named = run("findings", *damaged, "--switch", "node-0001", "--device", "node-001")
    assert (named.code, named.out) == (ExitCode.USAGE, "")
    problem = "error: there is no node, switch or domain 'node-001' in these sources"
    assert named.err == f"{problem}; did you mean node-0001 or node-0010 or node-0011?\n"


def test_every_device_of_the_sources_can_be_named(sources: tuple[object, ...]) -> None:
    tree = run("tree", *sources, "-o", "json").document
    domains = [domain for tier in tree["tiers"] for domain in tier["domains"]]
    names = {name for row in domains for name in (*row.get("nodes", ()), *row["switches"])}
    options = [word for name in names for word in ("--device", name)]
    assert run("findings", *sources, *options, "--kind", "swapped-cable").code == ExitCode.OK


def ends_of(evidence: dict[str, list[Any]]) -> list[str]:
    """Return the devices of all ports that a finding shows."""
    pairs = [end for pair in evidence["swap"] for end in pair]
    return [end["device"] for end in (*evidence["ports"], *pairs)]


def test_csv_has_a_row_for_each_finding(
    damaged: tuple[object, ...], document: list[dict[str, Any]]
) -> None:
    rows = list(csv.DictReader(io.StringIO(run("findings", *damaged, "-o", "csv").out)))
    assert [(row["kind"], row["device"], row["message"]) for row in rows] == [
        (row["kind"], row["subject"]["device"], row["message"]) for row in document
    ]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_cell_is_never_a_formula(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_csv(("name",), [(name,)])
    (row,) = list(csv.reader(io.StringIO(capsys.readouterr().out)))[1:]
    assert not row[0].startswith(("=", "+", "-", "@", "\t", "\r"))


def find(kind: FindingKind, device: str, *ports: tuple[str, str], port: str = "") -> Finding:
    return Finding(
        kind,
        device,
        port or None,
        severity=Severity.WARNING,
        message=f"{kind.value} of {device}.",
        ports=tuple(PortName(*end) for end in ports),
    )


def test_the_first_causes_name_both_ends_and_their_costs(tmp_path: Path) -> None:
    out = tmp_path / "fabric"
    words = ("--hosts", 64, "--rails", 4, "--radix", 16, "--lose-links", "1%", "--out", out)
    assert run("simulate", "fabric", *words).code == ExitCode.OK
    damaged = ("--reports", out / "reports", "--nodes", out / "nodes.yaml")
    lines = run("findings", *damaged, "--top", 3).out.splitlines()
    assert lines[0] == "Fix these first"
    assert split_cells(lines[1])[:4] == ["SEVERITY", "KIND", "COSTS", "SUBJECT"]
    rows = list(map(split_cells, lines[2:5]))
    assert all(re.fullmatch(r"\S+ port \S+ <> \S+ port \S+", row[3]) for row in rows)
    assert all(re.search(r"\d%|splits", row[2]) for row in rows)
    assert re.fullmatch(r"3 of 8 causes of 9 findings \(toponaut findings prints all\)", lines[5])
    every = run("findings", *damaged, "-o", "json").document
    first = run("findings", *damaged, "--top", 3, "-o", "json").document
    assert first[0] == every[0]
    assert 3 <= len(first) < len(every)
    more = run("findings", *damaged, "--top", 1000).out
    assert more.splitlines()[-1] == "8 of 8 causes of 9 findings"


def test_the_first_causes_do_not_hide_a_failed_check(damaged: tuple[object, ...]) -> None:
    words = (*damaged, "--top", 1, "--severity", "warning", "--check")
    assert run("findings", *words).code == ExitCode.CHECK_FAILED


def test_there_is_no_first_cause_of_the_past(tmp_path: Path) -> None:
    ran = run("findings", "--history", tmp_path / "h.db", "--since", "1d", "--top", 3)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")


def test_running_gangs_feel_a_finding(damaged: tuple[object, ...], tmp_path: Path) -> None:
    rows = run("findings", *damaged, "-o", "json").document
    assert {row["impact"]["gangs"] for row in rows} == {None}
    places = [row["impact"]["places"] for row in rows]
    node = next(names[0] for names in places if names and names[0].startswith("node-"))
    running = tmp_path / "running.yaml"
    running.write_text(f"- {{gang: train, pods: [{{node: {node}}}]}}\n", encoding="utf-8")
    felt = run("findings", *damaged, "--running", running, "-o", "json").document
    gangs = {row["impact"]["places"] == [node]: row["impact"]["gangs"] for row in felt[::-1]}
    assert gangs[True] == ["train"]
    assert [] in [row["impact"]["gangs"] for row in felt]


def list_rows(findings: list[Finding], *hosts: str, output: str = "text") -> list[str]:
    """Return the rows of a table, without its head and its total."""
    split: SilenceSplit[Finding] = SilenceSplit(tuple(findings), (), ())
    return render_text(list_parts(split, output, hosts)).splitlines()[1:-1]


DOWN, MISSING = FindingKind.DOWN_PORT, FindingKind.MISSING_LINK
SILENT, SWAPPED = FindingKind.SILENT_NODE, FindingKind.SWAPPED_CABLE


def test_the_faults_of_one_host_are_one_row_with_the_rest_as_evidence() -> None:
    findings = [
        find(MISSING, "node-1", ("node-1", "")),
        find(DOWN, "node-1", ("node-1", "eth2"), port="eth2"),
        find(DOWN, "node-1", ("node-1", "eth3"), port="eth3"),
        find(DOWN, "leaf-1", ("leaf-1", "swp1"), port="swp1"),
        find(DOWN, "leaf-1", ("leaf-1", "swp2"), port="swp2"),
    ]
    rows = list_rows(findings, "node-1")
    assert len(rows) == 3
    assert rows[-1].split()[:5] == ["warning", "down-port", "-", "node-1", "port"]
    assert rows[-1].endswith("down-port of node-1. Also: down-port port eth3, missing-link.")
    assert len(list_rows(findings, "node-1", output="wide")) == 5


def test_links_that_a_silent_host_does_not_confirm_are_evidence_of_its_silence() -> None:
    one_sided = find(
        FindingKind.ONE_SIDED_LINK, "leaf-1", ("leaf-1", "swp1"), ("node-1", "eth0"), port="swp1"
    )
    (row,) = list_rows([one_sided, find(SILENT, "node-1")], "node-1")
    assert "silent-node of node-1. Also: one-sided-link leaf-1 port swp1." in row
    assert len(list_rows([one_sided, find(SILENT, "node-2")], "node-1", "node-2")) == 2


def test_an_exchange_of_plugs_is_a_row_beside_the_faults_of_its_host() -> None:
    findings = [
        find(SWAPPED, "node-1", ("node-1", "eth0"), ("node-2", "eth0")),
        find(DOWN, "node-1", ("node-1", "eth2"), port="eth2"),
    ]
    assert len(list_rows(findings, "node-1", "node-2")) == 2


def test_hosts_with_the_same_faults_are_one_row() -> None:
    hosts = ("node-1", "node-2", "node-3")
    findings = [
        row
        for host in hosts
        for row in (
            find(DOWN, host, (host, "eth2"), port="eth2"),
            find(FindingKind.FLAPPING_LINK, host, (host, "eth3"), port="eth3"),
        )
    ]
    (row,) = list_rows(findings, *hosts)
    assert "node-[1-3] port eth2" in row
    assert "Also: flapping-link port eth3." in row


def test_a_missing_link_with_one_end_down_is_no_row_of_its_own() -> None:
    findings = [
        find(MISSING, "leaf-1", ("leaf-1", "swp9"), ("spine-1", "swp2")),
        find(DOWN, "spine-1", ("spine-1", "swp2"), port="swp2"),
    ]
    (row,) = list_rows(findings)
    assert row.split()[1] == "down-port"


def test_a_domain_stands_for_its_nodes_and_switches(
    damaged: tuple[object, ...], document: list[dict[str, Any]]
) -> None:
    name = run("tree", *damaged, "-o", "name").out.split()[0]
    spec = run("tree", *damaged, "--domain", name, "-o", "json").document
    (domain,) = [row for tier in spec["tiers"] for row in tier["domains"] if row["name"] == name]
    inside = {*domain["nodes"], *domain["switches"]}
    assert run("findings", *damaged, "--device", name, "-o", "json").document == [
        row for row in document if inside & {row["subject"]["device"], *ends_of(row["evidence"])}
    ]


def test_a_work_order_has_a_box_for_each_move(tmp_path: Path) -> None:
    out = tmp_path / "fabric"
    words = ("--hosts", 64, "--rails", 4, "--radix", 16, "--swap", 1, "--out", out)
    assert run("simulate", "fabric", *words).code == ExitCode.OK
    sources = ("--reports", out / "reports", "--nodes", out / "nodes.yaml")
    racks = tmp_path / "racks.csv"
    racks.write_text("Name,Site,Rack,Position\nleaf-p04-g08-r4,x,r12,40\n", encoding="utf-8")
    order = ("--site", "Hall 3", "--title", "Mend it", "--racks", racks)
    text = run("findings", *sources, *order, "-o", "work-order").out
    assert text.startswith("# Mend it\n\nHall 3, ")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Rack r12"]
    assert text.count("| ☐ |") == 1
    page = run("findings", *sources, *order, "-o", "work-order-html").out
    assert page.count("<td class=box>☐</td>") == 1
    table = run("findings", *sources, *order, "-o", "work-order-csv").out
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [(row["rack"], row["unit"], row["device"], row["port"]) for row in rows] == [
        ("r12", "40", "leaf-p04-g08-r4", "1"),
    ]
    first = run("findings", *sources, "--top", 1, "-o", "work-order").out
    assert first.count("| ☐ |") == 1


def test_a_work_order_is_of_the_present(damaged: tuple[object, ...]) -> None:
    ran = run("findings", *damaged, "--site", "x")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "apply to work orders only" in ran.err


@pytest.mark.parametrize("words", [("--top", "99"), ("-o", "wide")], ids=["top", "wide"])
def test_rows_name_the_racks_of_both_ends(
    words: tuple[str, ...], damaged: tuple[object, ...], tmp_path: Path
) -> None:
    found = run("findings", *damaged, "-o", "json").document
    ends = [row["evidence"]["ports"] for row in found if row["kind"] == "missing-link"]
    near, far = next(row for row in ends if len({end["device"] for end in row}) == len(row) == 2)
    racks = tmp_path / "racks.csv"
    racks.write_text(f"name,rack,position\n{near['device']},r07,31\n{far['device']},r08,\n")
    text = run("findings", *damaged, *words, "--racks", racks).out
    assert "(rack r07, unit 31)" in text
    assert "(rack r08)" in text


def test_names_that_the_file_of_racks_and_the_fabric_do_not_share_are_named(
    damaged: tuple[object, ...], tmp_path: Path
) -> None:
    sources = (*damaged, "-o", "work-order-csv")
    devices = {row["device"] for row in csv.DictReader(io.StringIO(run("findings", *sources).out))}
    racks = tmp_path / "racks.csv"
    known = sorted(devices)[1:]
    rows = "".join(f"{name},r1\n" for name in [*known, "gone-10", "gone-9"])
    racks.write_text(f"name,rack\n{rows}", encoding="utf-8")
    ran = run("findings", *sources, "--racks", racks)
    missing = {row["device"] for row in csv.DictReader(io.StringIO(ran.out)) if not row["rack"]}
    assert missing == {min(devices)}
    assert "racks: 2 names match no device: gone-9, gone-10\n" in ran.err
    assert min(devices) in ran.err
    assert ran.code == ExitCode.OK


def test_a_table_of_racks_needs_its_columns(damaged: tuple[object, ...], tmp_path: Path) -> None:
    racks = tmp_path / "racks.csv"
    racks.write_text("host,place\na,b\n", encoding="utf-8")
    ran = run("findings", *damaged, "-o", "work-order", "--racks", racks)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "expected CSV with the columns device (or name) and rack" in ran.err


def test_a_network_without_a_known_cable_comes_before_its_ports(tmp_path: Path) -> None:
    """Without its sweep no port has a known share; its evidence has 16 of its 32 nodes."""
    scene = without_cables(tmp_path, num=1)
    reports = scene.reports()
    for file in reports.glob("*sweep*"):
        file.unlink()
    sources = ("--reports", reports, "--nodes", scene.nodes())
    first, *others = run("findings", *sources, "-o", "json").document
    assert (first["kind"], first["severity"]) == ("plane-unknown", "error")
    assert (first["impact"]["nodes"], len(first["impact"]["places"])) == (32, 32)
    assert [(row["kind"], row["severity"]) for row in others] == [("down-port", "warning")]
    assert (others[0]["impact"]["cables"], others[0]["impact"]["share"]) == (1, None)
    listed = run("findings", *sources, "--top", 5).out.splitlines()[2]
    assert "plane-unknown  32 nodes not seen" in listed


def test_a_host_whose_ports_are_all_down_has_lost_all_of_its_cables(tmp_path: Path) -> None:
    scene = without_cables(tmp_path, num=4)
    words = ("--reports", scene.reports(), "--nodes", scene.nodes(), "--kind", "down-port")
    rows = run("findings", *words, "-o", "json").document
    assert len(rows) == 4
    assert {(row["severity"], row["impact"]["share"]) for row in rows} == {("error", 0.25)}
    assert {row["impact"]["goneShare"] for row in rows} == {1}


def without_cables(folder: Path, *, num: int) -> Scene:
    """Return 32 hosts with four rails, of which one host lacks some cables."""
    scene = Scene.of(folder, replace(RAILS, num_hosts=32))
    own = [row for row in scene.damaged.cables if row.low.device == scene.hosts[5]][:num]
    left = tuple(row for row in scene.damaged.cables if row not in own)
    return replace(scene, damaged=replace(scene.damaged, cables=left))


def test_a_finding_without_a_port_names_the_device_alone(tmp_path: Path) -> None:
    words = ("--hosts", 16, "--rails", 2, "--radix", 8, "--swap", 0, "--out", tmp_path / "f")
    assert run("simulate", "fabric", *words).code == 0
    reports = tmp_path / "f" / "reports"
    next(reports.glob("node-0003.*")).unlink()
    ran = run(
        "findings", "--reports", reports, "--nodes", tmp_path / "f" / "nodes.yaml", "--top", 9
    )
    assert "node-0003" in ran.out
    assert " port  " not in ran.out
