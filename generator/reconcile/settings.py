"""The settings by which a round writes: those of the Fabric object, and of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from generator.objects.tree_spec import DEFAULT_TREE_SPEC, TreeSpec, UnknownSetting, parse_tree_spec
from generator.objects.write_policy import WritePolicy, parse_write_policy
from generator.reconcile.write_delays import NO_DEBOUNCE, DebounceConfig
from topology.model.errors import ParseError

_UNREAD: Final = "the Fabric object has not been read"


def always_leader() -> bool:
    """Return True: a folder has one writer, this process."""
    return True


class WriteSettings(NamedTuple):
    """How this process writes."""

    debounce: DebounceConfig = NO_DEBOUNCE
    clock: Callable[[], float] = lambda: 0.0
    """Monotonic, in seconds."""
    is_dry_run: bool = False
    """Whether planned changes are logged and not written."""
    is_leader: Callable[[], bool] = always_leader
    """Whether this replica is the leader, which alone writes."""


class FabricRead(NamedTuple):
    """The Fabric object as one round read it."""

    document: Mapping[str, Any] | None = None
    """None if there is no such object, or it could not be read."""
    problems: tuple[ParseError, ...] = ()
    """Why it could not be read."""


class FabricSettings(NamedTuple):
    """The settings in the Fabric object, as last read."""

    policy: WritePolicy = WritePolicy(is_paused=True, unknown=_UNREAD)
    """Paused until the first read, since the object may say so."""
    tree_spec: TreeSpec = DEFAULT_TREE_SPEC
    """The requested form of the tree."""
    document: Mapping[str, Any] | None = None
    is_read: bool = False
    problems: tuple[ParseError, ...] = ()
    """The problems of settings that cannot be used in this round."""


def read_settings(fabric: FabricRead, last: FabricSettings) -> FabricSettings:
    """Return the settings of a round; if the object could not be read, its last version counts."""
    if fabric.problems:
        unknown = (UnknownSetting("", str(fabric.problems[0])),)
        unread = DEFAULT_TREE_SPEC._replace(unknown=unknown)
        tree_spec = last.tree_spec if last.is_read else unread
        return last._replace(tree_spec=tree_spec, problems=fabric.problems)
    document = fabric.document
    policy = parse_write_policy(document, last.policy)
    spec, problems = parse_tree_spec(document, last.tree_spec if last.is_read else None)
    return FabricSettings(
        policy, spec, document, is_read=True, problems=(*policy.problems, *problems)
    )
