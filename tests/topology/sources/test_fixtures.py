"""Every folder below fixtures/SOURCE is a test: an input and the expected result of the parser."""

import json
from pathlib import Path

import pytest

from tests.golden import Golden
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from tests.topology.sources.plain import case_id, cases, expected_text
from topology.model.facts import ParseResult
from topology.sources.host.nvidia_smi import build_clique_port, derive_clique, parse_gpu_fabrics
from topology.sources.infiniband.sysfs import parse_ib_sysfs
from topology.sources.lldp.lldpcli import parse_neighbors


@pytest.mark.parametrize("path", cases("ibnetdiscover"), ids=case_id)
def test_it_reads_an_ibnetdiscover_file_as_expected(path: Path, golden: Golden) -> None:
    found = parse_ibnetdiscover(path.read_bytes(), source=path.name)
    parsed = ParseResult(tuple(found.devices), found.errors)
    golden.check(path.with_name("expected.json"), expected_text(parsed))


@pytest.mark.parametrize("path", cases("lldpcli"), ids=case_id)
def test_it_reads_lldpcli_output_as_expected(path: Path, golden: Golden) -> None:
    parsed = parse_neighbors(path.read_bytes(), source=path.name)
    golden.check(path.with_name("expected.json"), expected_text(parsed))


@pytest.mark.parametrize("path", cases("ib_sysfs"), ids=case_id)
def test_it_reads_a_sysfs_tree_as_expected(path: Path, golden: Golden) -> None:
    parsed = parse_ib_sysfs(json.loads(path.read_bytes()), source="sys")
    golden.check(path.with_name("expected.json"), expected_text(parsed))


@pytest.mark.parametrize("path", cases("nvidia_smi"), ids=case_id)
def test_it_reads_the_output_of_nvidia_smi_as_expected(path: Path, golden: Golden) -> None:
    gpus, errors = parse_gpu_fabrics(path.read_bytes().decode(), source=path.name)
    domain = derive_clique(gpus)
    result = {
        "gpus": gpus,
        "errors": errors,
        "found": domain,
        "port": build_clique_port(domain.clique) if domain.clique else None,
    }
    golden.check(path.with_name("expected.json"), expected_text(result))
