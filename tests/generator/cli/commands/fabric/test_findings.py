"""What `toponaut findings` prints for people: one row for findings that say the same."""

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from generator.cli.commands.fabric.findings import list_parts
from generator.cli.exit_codes import ExitCode
from generator.cli.output import print_csv, render_text
from tests.generator.scenes import PAIRS, Scene, run
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
    assert header.split() == ["SEVERITY", "KIND", "SUBJECT", "WHAT", "TO", "DO"]
    assert len(expand_names(row.split()[2])) == 13
    assert "13 findings like this (-o wide prints each): Node " in row
    assert total == "13 warnings"


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
    subject = found[1].removeprefix("warning   down-port  ").split("  ")[0]
    nodes, port = subject.split(" port ")
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
    assert text.splitlines()[-1].endswith(note)
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
    assert named.err == "error: there is no node or switch 'node-001' in these sources\n"


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
    assert rows[0].split()[:5] == ["warning", "down-port", "node-1", "port", "eth2"]
    assert rows[0].endswith("down-port of node-1. Also: down-port port eth3, missing-link.")
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
