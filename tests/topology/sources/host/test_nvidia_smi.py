"""NVLink domains in the output of `nvidia-smi`; whole outputs are under fixtures/."""

from hypothesis import given
from hypothesis import strategies as st

from topology.sources.host.nvidia_smi import (
    GpuFabric,
    build_clique_port,
    derive_clique,
    parse_gpu_fabrics,
)

CLUSTER = "7c1d0a52-3f84-4b19-9a6e-d02b5e8f4c31"
CELLS = st.sampled_from(
    ["Completed", "Success", "N/A", "In Progress", "0", "1", CLUSTER, CLUSTER.replace("7", "0")]
)
GPUS = st.lists(st.builds(GpuFabric, CELLS, CELLS, CELLS, CELLS), max_size=4)


@given(st.text() | st.text(alphabet=" :\nGPUFabricState0.,"))
def test_it_never_raises_on_any_text(text: str) -> None:
    gpus, _ = parse_gpu_fabrics(text)
    derive_clique(gpus)


def test_it_does_not_split_lines_at_control_bytes() -> None:
    gpus, errors = parse_gpu_fabrics("I\x1c\x1d\x1e\x85c")
    assert not gpus
    assert len(errors) == 1


@given(GPUS, st.integers(0, 3))
def test_it_ignores_the_order_of_gpus(gpus: list[GpuFabric], turn: int) -> None:
    turned = [*gpus[turn:], *gpus[:turn]]
    assert derive_clique(turned) == derive_clique(gpus)
    assert derive_clique(gpus[::-1]) == derive_clique(gpus)


@given(GPUS)
def test_it_reports_a_domain_only_if_every_registered_gpu_is_in_it(
    gpus: list[GpuFabric],
) -> None:
    found = derive_clique(gpus)
    ready = {gpu for gpu in gpus if (gpu.state, gpu.status) == ("Completed", "Success")}
    if found.clique is not None:
        assert {(gpu.cluster, int(gpu.clique)) for gpu in ready} == {tuple(found.clique)}
        assert (
            build_clique_port(found.clique)
            .neighbors[0]
            .device_ids[0]
            .value.endswith(f".{found.clique.number}")
        )


def test_it_gives_domains_of_one_cluster_different_names() -> None:
    names = []
    for clique in ("1", "2"):
        found = derive_clique([GpuFabric("Completed", "Success", clique, CLUSTER)])
        assert found.clique is not None
        names.append(build_clique_port(found.clique).neighbors[0].device_name)
    assert names == ["nvlink-7c1d0a52-1", "nvlink-7c1d0a52-2"]
