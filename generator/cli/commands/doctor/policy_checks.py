"""The checks of the admission policies that limit what agents and the generator write. Pure.

A policy that names another account than the one in use refuses nothing, and the API server does not
report it: https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/issues/1317.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from generator.cli.commands.doctor.facts import (
    Account,
    ClusterFacts,
    PolicyFact,
    RoleBindingFact,
    as_mapping,
    as_rows,
)
from runtime.checks import Check, Outcome
from topology.model.errors import list_some, show

POLICIES: Final[Mapping[str, tuple[str, ...]]] = {
    "toponaut-agent": ("own-reports", "sweeps"),
    "toponaut-generator": (
        "own-labels",
        "own-hypernodes",
        "switch-reports",
        "ended-reservations",
        "fabric",
        "lease",
        "events",
        "own-outputs",
    ),
}
"""Per role the ends of the names of the policies that limit whoever has it."""
_SUBJECT: Final = "Policies"
_MAX_ACCOUNTS: Final = 4
_MISSING: Final = "is missing"
_LOOK: Final = "kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings -o yaml"
_INSTALL: Final = "install or upgrade the chart: see docs/install.md"


def check_policies(facts: ClusterFacts) -> Iterator[Check]:
    """Yield whether each policy is there, denies, and limits the accounts in use.

    Yields nothing if the cluster has neither accounts nor policies of Toponaut.
    """
    for fact in (facts.policies, facts.policy_bindings, facts.role_bindings):
        if fact.problem:
            message = f"cannot be read: {show(fact.problem, 400)}"
            yield Check(_SUBJECT, Outcome.UNKNOWN, message)
            return
    accounts = {role: _list_accounts(facts, role) for role in POLICIES}
    if not facts.policies.value and not any(accounts.values()):
        return
    problems = [row for role in POLICIES for row in _list_problems(facts, role, accounts[role])]
    missing = [name for name, problem in problems if problem == _MISSING]
    if missing:
        yield Check(_SUBJECT, Outcome.ERROR, f"missing: {', '.join(missing)}", _INSTALL)
    for name, problem in problems:
        if problem not in {"", _MISSING}:
            yield Check(_SUBJECT, Outcome.ERROR, f"{show(name)} {problem}", f"{_LOOK}; {_INSTALL}")
    if not any(problem for _, problem in problems):
        shown = _show_accounts({row for rows in accounts.values() for row in rows})
        yield Check(_SUBJECT, Outcome.OK, f"{len(problems)} policies limit {shown}")


def _list_accounts(facts: ClusterFacts, role: str) -> frozenset[Account]:
    """Return the accounts in use: those of the pods, and those to which the role is given."""
    bindings: Sequence[RoleBindingFact] = facts.role_bindings.value or ()
    given = (row for row in bindings if role in row.role)
    pods: frozenset[Account] = as_mapping(facts.pod_accounts.value).get(role, frozenset())
    return pods | {one for row in given for one in row.accounts}


def _list_problems(
    facts: ClusterFacts, role: str, accounts: frozenset[Account]
) -> Iterator[tuple[str, str]]:
    """Yield each policy of a role, and why it does not hold; empty if it does."""
    policies: Sequence[PolicyFact] = facts.policies.value or ()
    for name in (f"{role}-{end}" for end in POLICIES[role]):
        # Kustomize may have put a prefix or a suffix on each name.
        found = [row for row in policies if name in row.name]
        yield from ((row.name, _find_problem(row, facts, accounts)) for row in found)
        if not found:
            yield name, _MISSING


def _find_problem(policy: PolicyFact, facts: ClusterFacts, accounts: frozenset[Account]) -> str:
    """Return why a policy does not hold for some accounts; empty if it does."""
    if policy.spec.get("failurePolicy") == "Ignore":
        return "lets through what it cannot judge: failurePolicy is Ignore"
    if _narrows(policy.spec.get("matchConstraints")):
        return "does not apply to all objects: matchConstraints has a selector or an exception"
    bindings = [
        row
        for row in facts.policy_bindings.value or ()
        if row.spec.get("policyName") == policy.name
        and "Deny" in as_rows(row.spec.get("validationActions"))
    ]
    if not bindings:
        return "refuses nothing: no ValidatingAdmissionPolicyBinding with the action Deny names it"
    if all(_narrows(row.spec.get("matchResources")) for row in bindings):
        return (
            f"does not apply to all objects: matchResources of {show(bindings[0].name)} limits it"
        )
    free = frozenset(one for one in accounts if not _limits(policy, bindings, facts, one))
    return f"does not limit {_show_accounts(free)}, which is in use" if free else ""


def _narrows(match: object) -> bool:
    """Return whether a match leaves out objects of the kinds that the policy is for."""
    rows = as_mapping(match)
    selectors = (rows.get("namespaceSelector"), rows.get("objectSelector"))
    is_bound = any(as_mapping(one).get(key) for one in selectors for key in _TERMS)
    return is_bound or bool(rows.get("excludeResourceRules"))


_TERMS: Final = ("matchLabels", "matchExpressions")


def _limits(
    policy: PolicyFact, bindings: Sequence[PolicyFact], facts: ClusterFacts, account: Account
) -> bool:
    """Return whether a policy matches the requests of an account.

    A policy finds the account in the subjects of a ClusterRoleBinding. Older policies, and those
    that somebody edited, name it as text.
    """
    conditions = [as_mapping(row) for row in as_rows(policy.spec.get("matchConditions"))]
    expressions = [str(row.get("expression")) for row in conditions]
    if "paramKind" not in policy.spec or not any("params" in one for one in expressions):
        return any(account.user in re.split(r"[\"']", one) for one in expressions)
    return any(
        account in row.accounts or account.groups & row.groups
        for binding in bindings
        for row in facts.role_bindings.value or ()
        if _selects(as_mapping(binding.spec.get("paramRef")), row)
    )


def _selects(reference: Mapping[str, Any], row: RoleBindingFact) -> bool:
    if "name" in reference:
        return bool(reference["name"] == row.name)
    wanted = as_mapping(as_mapping(reference.get("selector")).get("matchLabels"))
    return bool(wanted) and wanted.items() <= row.labels.items()


def _show_accounts(accounts: frozenset[Account] | set[Account]) -> str:
    return list_some(sorted(map(str, accounts)), _MAX_ACCOUNTS)
