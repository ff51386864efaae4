"""The kinds of objects and their paths at the API server."""

from __future__ import annotations

from typing import Final, NamedTuple


class Resource(NamedTuple):
    """One kind of object."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    kind: str
    namespace: str = ""
    """The only namespace that is read; empty: all of them, or a kind without namespaces."""

    @property
    def api_version(self) -> str:
        """The `apiVersion` of an object."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def crd_name(self) -> str:
        """The name of the CustomResourceDefinition of the kind."""
        return f"{self.plural}.{self.group}"

    def path(self, name: str = "", *, namespace: str = "") -> str:
        """Return the path of one object or, without a name, of all objects.

        Without a namespace the path is that of cluster-scoped objects, or of the namespaces that
        are read.
        """
        parts = ["/apis", self.group] if self.group else ["/api"]
        parts.append(self.version)
        namespace = namespace or ("" if name else self.namespace)
        if namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        return "/".join(parts)


NODES: Final = Resource("", "v1", "nodes", "Node")
PODS: Final = Resource("", "v1", "pods", "Pod")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
HYPERNODES: Final = Resource("topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode")
REPORTS: Final = Resource("toponaut.io", "v1alpha1", "neighborreports", "NeighborReport")
FABRICS: Final = Resource("toponaut.io", "v1alpha1", "fabrics", "Fabric")
RECORDS: Final = Resource("toponaut.io", "v1alpha1", "treerecords", "TreeRecord")
CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"
)
RESERVATIONS: Final = Resource(
    "toponaut.io", "v1alpha1", "placementreservations", "PlacementReservation"
)
