"""The reading commands on dumps of a fabric's own managers, for fabrics that refuse sweeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from generator.cli.exit_codes import ExitCode
from generator.ingest.captures import DumpFormat, detect_dump_format
from tests.generator.scenes import RAILS, Scene, run
from tests.topology.sources.ibnetdiscover.dump_text import db_csv, net_dump, subnet_lst
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.model.facts import Device

Write = Callable[[Iterable[Device]], str]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene.of(tmp_path_factory.mktemp("rails"), RAILS)


@pytest.mark.parametrize(
    ("form", "write"),
    [
        pytest.param(DumpFormat.DB_CSV, db_csv, id="db_csv"),
        pytest.param(DumpFormat.NET_DUMP, net_dump, id="net_dump"),
        pytest.param(DumpFormat.SUBNET_LST, subnet_lst, id="lst"),
    ],
)
def test_it_answers_as_from_a_sweep_by(scene: Scene, form: DumpFormat, write: Write) -> None:
    devices = parse_ibnetdiscover(scene.sweep_text().encode()).devices
    dump = scene.write(f"dump.{form}", write(devices))
    assert detect_dump_format(dump.read_bytes()) is form
    for command in ("tree", "findings"):
        from_sweep = run(command, scene.sweep(), "--nodes", scene.nodes(), "-o", "json")
        found = run(command, "--ibnetdiscover", dump, "--nodes", scene.nodes(), "-o", "json")
        assert (found.code, found.document) == (ExitCode.OK, from_sweep.document)


def test_it_reports_a_dump_without_hosts(scene: Scene) -> None:
    router = 'rtguid=0x2c90200000010\nRt\t1 "R-0002c90200000010"\t\t# "rt-1"\n[1](2c90200000011) \t'
    switch = '"S-0002c90000000001"[1]\t\t# lid 1 lmc 0 "leaf" lid 2 4xEDR\n'
    ran = run("tree", scene.write("routers.txt", router + switch))
    assert (ran.code, ran.out) == (ExitCode.NOTHING, "")
    assert "no hosts found" in ran.err
