"""The checks of what the chart installs: pods of agents, rights, and the certificate. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from generator.cli.commands.doctor.facts import AgentSetFact, CertificateFact, Fact, RightsFact
from generator.cli.output import show_count
from runtime.checks import Check, Outcome
from topology.model.errors import list_some, show

_MAX_RIGHTS: Final = 6
_TWINS: Final = {
    "toponaut-sweeper-gpu": "toponaut-sweeper",
    "toponaut-sweeper": "toponaut-sweeper-gpu",
    "toponaut-agent-gpu": "",
    "toponaut-agent": "toponaut-agent-gpu",
}
"""By a part of the name of a DaemonSet: the one that may have its pods instead. Nodes with and
without GPUs have DaemonSets of their own, so one is empty if all nodes are of one kind. If
`toponaut-agent-gpu` has no nodes, no agent uses the RuntimeClass of the chart's values."""
_EXPIRY_NOTICE: Final = timedelta(days=14)
"""Two thirds of the life of a certificate of cert-manager's default are over long before."""


def check_agent_pods(fact: Fact, *, namespace: str) -> Iterator[Check]:
    """Yield whether each node that should have an agent has a ready one."""
    subject = "Agent pods"
    if fact.value is None:
        yield Check(subject, Outcome.UNKNOWN, f"cannot be read: {show(fact.problem, 400)}")
        return
    rows: Sequence[AgentSetFact] = fact.value
    wanted = {row.name: row.num_wanted for row in rows}
    for row in rows:
        message = f"{show(row.name)}: {row.num_ready} of {show_count(row.num_wanted, 'pod')} ready"
        if row.num_ready < row.num_wanted:
            fix = f"kubectl -n {namespace} describe daemonset {show(row.name)}"
            yield Check(subject, Outcome.WARNING, message, fix)
        elif row.num_wanted or wanted.get(_name_twin(row.name)):
            yield Check(subject, Outcome.OK, message)
        else:
            message = f"{show(row.name)}: no node is selected"
            fix = "compare the labels of the nodes with the node selectors in the chart's values"
            yield Check(subject, Outcome.WARNING, message, fix)


def _name_twin(name: str) -> str:
    """Return the name of the other DaemonSet, with its prefix and suffix; empty without one."""
    part = next((part for part in _TWINS if part in name), "")
    return name.replace(part, _TWINS[part], 1) if part and _TWINS[part] else ""


def check_rights(fact: Fact) -> Iterator[Check]:
    """Yield whether the generator's account may do what it does; nothing without an account."""
    subject = "Rights"
    if fact.problem:
        yield Check(subject, Outcome.UNKNOWN, f"cannot be read: {show(fact.problem, 400)}")
    elif fact.value is not None:
        yield _judge_rights(subject, fact.value)


def _judge_rights(subject: str, rights: RightsFact) -> Check:
    name, refused = show(rights.account.name), rights.refused
    if not refused:
        return Check(subject, Outcome.OK, f"{name} may do all that it does")
    shown = list_some(list(dict.fromkeys(map(str, refused))), _MAX_RIGHTS)
    fix = (
        "name the outputs in generator.outputs of the chart, and upgrade it; then: kubectl auth "
        f"can-i {refused[0]} --as {show(rights.account.user)}"
    )
    return Check(subject, Outcome.ERROR, f"{name} may not: {shown}", fix)


def check_certificate(fact: Fact, *, now: datetime, namespace: str) -> Iterator[Check]:
    """Yield how long the certificate of the placement service is valid; nothing without TLS."""
    subject = "Certificate"
    if fact.problem:
        yield Check(subject, Outcome.UNKNOWN, f"cannot be read: {show(fact.problem, 400)}")
        return
    if fact.value is None:
        return
    found: CertificateFact = fact.value
    name = f"Secret {show(found.secret, 253)}"
    look = f"kubectl -n {namespace} get certificate,secret; see docs/install.md"
    if found.expires is None:
        yield Check(subject, Outcome.ERROR, f"{name} is missing or has no certificate", look)
        return
    left = found.expires - now
    day = f"{found.expires:%Y-%m-%d}"
    if left <= timedelta():
        yield Check(subject, Outcome.ERROR, f"{name} expired on {day}", look)
    elif left < _EXPIRY_NOTICE:
        yield Check(subject, Outcome.WARNING, f"{name} expires on {day}", look)
    else:
        yield Check(subject, Outcome.OK, f"{name} is valid until {day}")
