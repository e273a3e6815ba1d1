"""Policies by name, for configurations and the command line: `ssd`, `cvar:0.25`, `ssd:1e-4`."""

from __future__ import annotations

import dataclasses

from surefoot.errors import InputError, shown, unknown
from surefoot.policies.base import Policy
from surefoot.policies.risk import CPW, CVaR, Greedy, MeanVariance, Wang
from surefoot.policies.ssd import SSD

POLICIES: dict[str, type[Policy]] = {
    "greedy": Greedy,
    "ssd": SSD,
    "cvar": CVaR,
    "mean-variance": MeanVariance,
    "wang": Wang,
    "cpw": CPW,
}
_MAIN = {"cvar": "alpha", "mean-variance": "weight", "wang": "eta", "cpw": "eta"}


def policy_named(text: str | Policy) -> Policy:
    """`name`, `name:value` for the main parameter, or `name:field=value,field=value`."""
    if isinstance(text, Policy):
        return text
    if not isinstance(text, str):
        raise InputError(f"policy = {shown(text)}: pass a policy, such as SSD(), or its name")
    name, _, rest = text.partition(":")
    if name not in POLICIES:
        raise unknown("policy", name, POLICIES)
    kind = POLICIES[name]
    fields = {f.name: f for f in dataclasses.fields(kind)}
    options: dict[str, float | str] = {}
    for part in filter(None, rest.split(",")):
        field, equals, value = part.partition("=")
        if not equals:
            field, value = _MAIN.get(name, "tolerance"), part
        if field not in fields:
            raise unknown(f"option of policy {name}", field, fields)
        try:
            options[field] = value if field == "undecided" else float(value)
        except ValueError:
            raise InputError(f"policy {text!r}: {field} = {value!r} is not a number") from None
    return kind(**options)  # type: ignore[arg-type]


def policy_text(policy: Policy) -> str:
    """The inverse of `policy_named`."""
    names = {kind: name for name, kind in POLICIES.items()}
    if type(policy) not in names:
        raise InputError(f"{policy!r} has no name: only {', '.join(POLICIES)} can be written down")
    values = {f.name: (getattr(policy, f.name), f.default) for f in dataclasses.fields(policy)}
    parts = [f"{name}={value}" for name, (value, usual) in values.items() if value != usual]
    return ":".join([names[type(policy)], *([",".join(parts)] if parts else [])])
