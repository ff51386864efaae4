"""A store in a folder, with the paths of its folders and what people write there."""

from copy import deepcopy
from pathlib import Path
from typing import Any

from generator.objects.write_policy import APPROVED_PLAN_ANNOTATION
from generator.store.fabric_store import FabricStore
from generator.store.folder_store import FolderStore
from generator.store.object_files import render_json, write_object
from topology.reports.fabric_status import FABRIC_NAME, fabric_head


class StoreFolder(FabricStore):
    """The store of a server or a command in a folder."""

    def __init__(self, root: Path, nodes: Path | None = None) -> None:
        super().__init__(FolderStore(root, nodes))
        self.reports = root / "neighborreports"
        self.hypernodes = root / "hypernodes"
        self.fabrics = root / "fabrics"
        self.records = root / "treerecords"

    def write_fabric(self, document: dict[str, Any]) -> bool:
        """Write the Fabric object as a person does."""
        return write_object(self.fabrics, FABRIC_NAME, render_json(document))

    def read_fabric(self) -> dict[str, Any] | None:
        document = super().read_fabric()
        return None if document is None else dict(document)


def with_approval(document: dict[str, Any] | None, plan: str) -> dict[str, Any]:
    """Return a Fabric object with an approval, as kubectl annotate writes it."""
    approved = deepcopy(document) if document is not None else fabric_head()
    approved.setdefault("metadata", {}).setdefault("annotations", {})[APPROVED_PLAN_ANNOTATION] = (
        plan
    )
    return approved
