"""The page: one file without any address, whose document says what the picture draws."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from generator.web import build_page_document, render_page
from generator.web.page import read_libraries
from tests.generator.scenes import run
from tests.repository import ROOT
from topology.model.facts import Finding, FindingKind, Impact, PortName, Severity
from topology.model.tree import DomainSpec, Unplaced, build_tree

SVG_NAMESPACE = "http://www.w3.org/2000/svg"
HOSTILE = "</script><script>alert(1)</script><!--\u202e\x1b[31m"


def read_document(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="document">(.*?)</script>', page)
    assert found
    document: dict[str, Any] = json.loads(found[1])
    return document


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("fabric") / "swapped"
    words = ("--hosts", "64", "--rails", "2", "--radix", "8", "--swap", "1", "--out", folder)
    assert run("simulate", "fabric", *words).code == 0
    ran = run("export", "html", "--reports", folder / "reports")
    assert ran.code == 0, ran.err
    return ran.out


def test_its_policy_allows_its_own_script_and_style_and_no_address(page: str) -> None:
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert found
    for element in ("style", "script", 'script type="module"'):
        inner = re.search(rf"<{element}>(.*?)</{element.split()[0]}>", page, re.DOTALL)
        assert inner
        assert b64encode(sha256(inner[1].encode()).digest()).decode() in found[1]
    assert found[1].startswith("default-src 'none'; ")
    assert "unsafe" not in found[1]
    own = page.replace(read_libraries(), "").replace(SVG_NAMESPACE, "")
    assert not re.search(r"https?://|\bsrc=|@import|url\(", own)


def test_the_libraries_are_the_files_that_their_source_names() -> None:
    folder = ROOT / "generator" / "web" / "static" / "vendor"
    named = dict(re.findall(r"`([\w.]+)`.*`([0-9a-f]{64})`", (folder / "SOURCE.md").read_text()))
    files = {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.min.*")}
    assert named == files


def test_a_swapped_pair_names_the_links_whose_plugs_the_finding_exchanges(page: str) -> None:
    document = read_document(page)
    links, names = document["links"], document["devices"]["name"]
    assert document["exchanges"]
    for one, other, number in document["exchanges"]:
        finding = document["findings"][number]
        assert finding["kind"] in {"swapped-cable", "wrong-rail"}
        for link, ends in zip((one, other), zip(*finding["swap"], strict=True), strict=False):
            assert document["states"][links["state"][link]] == "swapped"
            ports = {
                f"{names[links[end][link]]} port {links['ports'][links[f'{end}Port'][link]]}"
                for end in ("a", "b")
            }
            assert ports & set(ends)


def test_hostile_names_stay_text() -> None:
    spec = DomainSpec(HOSTILE, tier=1, parent=None, nodes=(HOSTILE, "node-2"))
    tree = build_tree([spec], tiers=("leaf",), unplaced=[Unplaced("node-3", HOSTILE)])
    finding = Finding(
        FindingKind.DOWN_PORT, HOSTILE, HOSTILE, severity=Severity.ERROR, message=HOSTILE
    )
    page = render_page(build_page_document(tree, None, [finding]))
    assert page.count("</script>") == 3
    assert "<!--" not in page
    assert page.isascii() or "\u202e" not in page
    document = read_document(page)
    name = document["devices"]["name"][document["hosts"][0]]
    assert name.startswith("</script><script>alert(1)")
    assert "\x1b" not in name


def test_a_tree_without_cables_has_hosts_and_no_links() -> None:
    tree = build_tree(
        [DomainSpec("leaf-1", tier=1, parent=None, nodes=("node-1", "node-2"))], tiers=("leaf",)
    )
    document = build_page_document(tree, None, [])
    assert [document["devices"]["name"][host] for host in document["hosts"]] == ["node-1", "node-2"]
    assert document["links"]["a"] == []


def test_a_finding_names_its_cause_and_each_cause_its_evidence() -> None:
    def find(
        kind: FindingKind, device: str, port: str | None = None, *ports: tuple[str, str]
    ) -> Finding:
        severity = Severity.INFO if kind is FindingKind.AUX_SWITCH else Severity.WARNING
        ends = tuple(PortName(*end) for end in ports)
        return Finding(kind, device, port, severity=severity, message="m", ports=ends)

    tree = build_tree(
        [DomainSpec("leaf-1", tier=1, parent=None, nodes=("node-1", "node-2"))], tiers=("leaf",)
    )
    findings = [
        find(FindingKind.AUX_SWITCH, "leaf-9"),
        find(FindingKind.MISSING_LINK, "leaf-1", None, ("leaf-1", "7"), ("leaf-2", "7")),
        find(FindingKind.MISSING_LINK, "leaf-1", None, ("leaf-1", "1"), ("node-1", "eth0")),
        find(FindingKind.SLOW_LINK, "node-1", "eth1"),
        find(FindingKind.DOWN_PORT, "node-1", "eth0"),
    ]
    rows = build_page_document(tree, None, findings)["findings"]
    assert [(row["kind"], row["cause"], row["evidence"]) for row in rows] == [
        ("down-port", 0, " Also: slow-link port eth1."),
        ("slow-link", 0, ""),
        ("missing-link", 2, ""),
        ("aux-switch", 3, ""),
        ("missing-link", 0, ""),
    ]


def test_the_same_finding_of_many_devices_is_one_cause_with_all_of_them() -> None:
    hosts = tuple(f"n{number}" for number in range(1, 7))
    tree = build_tree([DomainSpec("leaf", 1, None, hosts)], tiers=("leaf",))
    cost = [Impact(places=(host,), num_nodes=1, hides=True) for host in hosts]
    silent = [
        Finding(
            FindingKind.SILENT_NODE, host, None, Severity.WARNING, f"{host} is silent.", impact=row
        )
        for host, row in zip(hosts, cost, strict=True)
    ]
    rows = build_page_document(tree, None, silent)["findings"]
    assert [row["cause"] for row in rows] == [0] * len(hosts)
    assert (rows[0]["causeCosts"], rows[0]["costs"]) == ("6 nodes not seen", "1 node not seen")
    assert rows[0]["alike"] == [1, 2, 3, 4, 5]
    assert rows[0]["evidence"] == " Likewise: n2, n3, n4, n5 and 1 more."


def test_it_writes_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "fabric"
    assert run("simulate", "fabric", "--hosts", "8", "--rails", "1", "--out", folder).code == 0
    ran = run("export", "html", "--reports", folder / "reports", "--out", tmp_path / "out")
    assert (ran.code, ran.out) == (0, "")
    assert (tmp_path / "out/fabric.html").read_text().startswith("<!doctype html>")


def test_each_link_is_in_the_planes_of_its_ports(tmp_path: Path) -> None:
    folder = tmp_path / "fabric"
    words = ("--hosts", "32", "--rails", "4", "--radix", "16", "--medium", "ethernet")
    more = ("--storage-leaves", "2", "--out", folder)
    assert run("simulate", "fabric", *words, *more).code == 0
    document = read_document(run("export", "html", "--reports", folder / "reports").out)
    links, kinds = document["links"], document["devices"]["kind"]
    assert document["planes"] == ["compute", "storage"]
    assert set(links["planes"]) == {1, 2}
    of_hosts = [
        bits
        for a, b, bits in zip(links["a"], links["b"], links["planes"], strict=True)
        if "host" in (kinds[a], kinds[b])
    ]
    assert sorted(of_hosts) == [1] * 32 * 4 + [2] * 32 * 2
