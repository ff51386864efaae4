"""The rules of writes on a real server: the same suite as on a folder."""

from collections.abc import Iterator
from time import monotonic

import pytest

from generator.kube.resources import FABRICS, HYPERNODES, RECORDS
from generator.kube.transport import KubeTransport
from generator.objects.tree_record import RECORD_NAME
from generator.store.cluster_store import ClusterStore
from generator.store.fabric_store import FabricStore
from runtime.retry import WaitContext
from tests.generator.store.store_rules import OpenStore, StoreRules
from tests.kube.followers import JITTER, HastyStop
from tests.lab.api_server import ApiServer
from topology.reports.fabric_status import FABRIC_NAME

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]


class TestClusterStore(StoreRules):
    """A cluster, as commands read and write it."""

    @pytest.fixture
    def open_store(self, volcano: ApiServer, through: KubeTransport) -> Iterator[OpenStore]:
        """Opens the store of a cluster without such objects."""

        def opened(*, is_shared: bool = False) -> FabricStore:
            pace = WaitContext(HastyStop(), monotonic, JITTER)
            return FabricStore(ClusterStore(through, pace=pace), is_shared=is_shared)

        paths = (
            HYPERNODES.path(),  # all of them: other tests share the server
            RECORDS.path(RECORD_NAME),
            FABRICS.path(FABRIC_NAME),
        )
        for path in paths:
            volcano.request("DELETE", path)
        yield opened
        for path in paths:
            volcano.request("DELETE", path)
