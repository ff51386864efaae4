"""`inspect` on every stored capture of a real device: each is recognised."""

from pathlib import Path

import pytest

from tests.generator.scenes import run
from tests.shared_samples import SAMPLES, needs_samples

pytestmark = needs_samples

FORMATS = {
    "fabric": ("lldpcli-neighbors", "lldpcli-chassis", "snmpwalk", "cabling-csv"),
    "ibnetdiscover": ("ibnetdiscover",),
    "lldpcli": ("lldpcli-neighbors", "lldpcli-chassis"),
    "pcap": ("frames",),
    "snmp": ("snmpwalk",),
}
FOREIGN = {
    "ironic_tlvs_juniper-like.hex",  # a list of TLVs, and no frame
    "own_five-protocols.plain",
    "own_setA_identity.plain",
    "suzieq_cumulus-clos_bgp.output",  # an envelope around the output of many devices
    "suzieq_lldpctl-plain.txt",
}
REFUSED = {
    "ndr-split-2x_redacted-fragment.txt",
    "own_oddities_64neigh_BROKEN.json",  # neither JSON nor UTF-8, as lldpcli prints it
}
FILES = sorted(path for path in SAMPLES.glob("*/**/*") if path.is_file())


def sample(path: Path) -> str:
    return str(path.relative_to(SAMPLES))


@pytest.mark.parametrize("path", FILES, ids=sample)
def test_it_recognises_a_real_capture(path: Path) -> None:
    ran = run("inspect", path, "-o", "json")
    (found,) = ran.document
    if path.name in FOREIGN:
        assert found["format"] == "unknown"
        assert found["problems"]
        return
    assert found["format"] in FORMATS[path.relative_to(SAMPLES).parts[0]]
    if path.name in REFUSED or path.suffix == ".xml":
        assert found["problems"]
    elif path.name not in {"vlan-only.keyvalue", "3560_CDP.pcap"}:  # captures without a neighbor
        assert any(count for name, count in found["counts"].items() if not name.startswith("bad"))


def test_every_folder_of_captures_is_known() -> None:
    assert {path.relative_to(SAMPLES).parts[0] for path in FILES} == set(FORMATS)
