"""``kedro gate``: may the new product take the place of the old one?"""

from __future__ import annotations

import json
from typing import Any

import click
from kedro.framework.cli.utils import _split_params  # as `kedro run` reads --params

from judge_calibration.console.exits import Exit, explained
from judge_calibration.runs import files
from judge_calibration.session.project import environment_label, find_project

OUTCOMES = {
    "pass": Exit.PASS,
    "fail": Exit.FAIL,
    "inconclusive": Exit.PAUSE,
    "conflict": Exit.PAUSE,
}
AUDIT = "gate_audit"
"""Beginning of the names of the audit queue's artifacts."""

_COLOURS = {Exit.PASS: "green", Exit.FAIL: "red", Exit.PAUSE: "yellow"}


@click.command("gate")
@click.option("--env", "-e", help="Environment whose newest verdicts compare both products.")
@click.option("--run", "run_id", help="A run with the products' verdicts, in place of the newest.")
@click.option("--old", help="Name of the old product (parameter gate.old).")
@click.option("--new", help="Name of the new product (parameter gate.new).")
@click.option("--params", default="", callback=_split_params, help="Parameters in place of those in files.")
@click.option("--json", "as_json", is_flag=True, help="Print the decision as JSON and nothing else.")
@explained
def command(
    env: str | None,
    run_id: str | None,
    old: str | None,
    new: str | None,
    params: dict[str, Any],
    as_json: bool,
) -> Exit:
    """Decide on a product change by two keys: the judge, and a blinded human sample.

    The pairs of the environment hold the old product's answer and the new one's (candidate_a, candidate_b).
    The decision rule is reporting.rule; the shipped EXAMPLE is refused. The decision is kept under
    08_reporting/gate_decision.*: JSON for machines, a page for people. What a person should look at first is
    under gate_audit: a table, a page with raw requests and replies (gate_audit.html), and the pairs blinded
    (gate_audit_packets).

    Exit codes: 0 pass, 1 fail, 2 usage (no such run, no rule or the EXAMPLE), 3 pause (inconclusive or
    conflict), 4 it could not be decided.
    """
    from judge_calibration.options.gate import GateOptions
    from judge_calibration.options.reporting import ReportingOptions
    from judge_calibration.report.gate_page import HEADLINES, gate_document, gate_page, sentinel_document
    from judge_calibration.session.auditing import asked_in, is_simulated, keep_audit
    from judge_calibration.session.configuration import block_of, read_parameters
    from judge_calibration.session.decisions import decision_id, keep
    from judge_calibration.session.gating import decide_gate

    project = find_project(env)
    parameters = read_parameters(project.root, env, params)
    named = {name: value for name, value in (("old", old), ("new", new)) if value is not None}
    options = block_of(parameters, "gate", GateOptions).model_copy(update=named)
    reporting = block_of(parameters, "reporting", ReportingOptions)
    gate = decide_gate(project, env, options, reporting, run_id)
    code = OUTCOMES[gate.decision.outcome]
    version = decision_id()
    simulated = is_simulated(gate.run, project.root)
    queue = gate.audit_queue(reporting.audit)
    sentinel = gate.sentinel
    document = gate_document(
        gate.decision,
        gate.authority,
        sentinel_document(sentinel.cell, sentinel.status, sentinel.reason, sentinel.result),
        {
            "decision": version,
            "environment": environment_label(env),
            "exit_code": int(code),
            "products": {"old": options.old, "new": options.new},
            "cell": gate.cell,
            "runs": gate.runs,
            "simulated": simulated,
            "audit": {"with_a_reason": len(queue), "queued": int(queue["queued"].sum())},
        },
    )
    page = gate_page(
        gate.decision, gate.authority, gate.shift, document, gate.pairs, (), simulated, queue, AUDIT
    )
    tables = {"gate_decision": gate.decision.frame()}
    written = keep(project.data, "gate_decision", version, document, page, tables, simulated)
    written |= keep_audit(
        project.data,
        AUDIT,
        version,
        queue,
        gate.pairs,
        gate.verdicts,
        asked_in(gate.run, project.root),
        gate.labels,
        reporting.audit,
        f"To look at before {options.new} takes the place of {options.old}",
        simulated,
    )
    if as_json:
        click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
        return code
    click.secho(HEADLINES[gate.decision.outcome], fg=_COLOURS[code], bold=True)
    for reason in gate.decision.reasons:
        click.echo(f"  {reason}")
    for name, key in [("judge", gate.decision.judge), *(("people", key) for key in gate.decision.humans)]:
        why = f" ({key.reason})" if key.reason else ""
        # A key without a pair has no net preference to show.
        net = f"; net {key.net:+.3f} ({key.low:+.3f} to {key.high:+.3f})" if key.n else ""
        click.echo(f"  {name}, {key.scope}: {key.verdict}{why}{net}, {key.n} pairs, {key.tasks} tasks")
    if sentinel.reason:
        click.echo(f"  sentinel: {sentinel.reason}")
    click.echo(f"  rule '{gate.decision.rule}': {gate.decision.rule_status}")
    if gate.decision.audit_pairs:
        click.echo(f"  {len(gate.decision.audit_pairs)} pairs on which judge and people disagree")
    if len(queue):
        click.echo(f"  {int(queue['queued'].sum())} pairs wait in the audit queue")
    places = {"html": "The page", "json": "The JSON"}
    if len(queue):
        places |= {f"{AUDIT}_page": "The audit queue", f"{AUDIT}_packets": "Its pairs blinded"}
    for name, title in places.items():
        if name in written:
            click.echo(f"{title}: {files.relative(written[name], project.root)}")
    return code
