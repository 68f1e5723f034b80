"""``kedro plan``: what a run would ask, and what that takes, before anything is spent."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from kedro.framework.cli.utils import _split_params  # as `kedro run` reads --params

from judge_calibration.console.exits import Exit, explained
from judge_calibration.errors import RunError
from judge_calibration.session.project import environment_label, find_project

if TYPE_CHECKING:
    import pandas as pd

_PIPELINES = ("judging", "attributes")
_SUMMED = ("judgments", "calls", "prompt_tokens_estimated", "prompt_tokens_most", "completion_tokens_most")


@click.command("plan")
@click.option("--env", "-e", help="Environment to plan (base if not given).")
@click.option(
    "--pipelines", "-p", default=",".join(_PIPELINES), show_default=True, help="Pipelines, by commas."
)
@click.option(
    "--params",
    default="",
    callback=_split_params,
    help="Parameters in place of those in files: name=value,name=value.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
@explained
def command(env: str | None, pipelines: str, params: dict[str, Any], as_json: bool) -> Exit:
    """Say how many calls, tokens, how much money and time a run takes, per judge and protocol.

    The prompts are made as a run would make them, from the files as they are now, and counted. No model is
    asked and nothing is written. Answers that are kept already are not asked for again.

    Exit codes: 0 planned, 2 an unknown pipeline or a wrong parameter, 4 it could not be planned.
    """
    from judge_calibration.session.planning import plan_environment

    names = tuple(name.strip() for name in pipelines.split(",") if name.strip())
    unknown = [name for name in names if name not in _PIPELINES]
    if unknown or not names:
        raise RunError(
            f"Calls are planned by {' and '.join(_PIPELINES)}; found {', '.join(unknown) or 'no pipeline'}.",
            f"give --pipelines {','.join(_PIPELINES)} or one of them",
        )
    project = find_project(env)
    planned = plan_environment(project.root, env, params, names)
    tables = [_table(item, project.runs, project.root) for item in planned]
    if as_json:
        click.echo(_as_json(env, tables))
        return Exit.PASS
    for item, table in zip(planned, tables, strict=True):
        _say(item, table)
    click.echo("No model was asked.")
    return Exit.PASS


def _table(item: Any, runs: Any, root: Any) -> pd.DataFrame:
    """Return one row a judge, protocol and constraint: all that is planned, and what is still to be asked."""
    from judge_calibration.judges.call_plan import call_plan
    from judge_calibration.judges.call_time import add_time
    from judge_calibration.judges.store import StoreReader
    from judge_calibration.session.planning import seen_rates

    transports = {judge.judge_id: judge.transport for judge in item.options.judges}
    keys = ["judge_id", "protocol", "constraint"]
    kept = set(StoreReader(item.store).answers(item.calls["call_id"].unique()))
    left = item.calls[~item.calls["call_id"].isin(kept)]
    whole = call_plan(item.calls, transports)
    if item.pipeline == "attributes" and len(whole):
        # Each read is a judgment of its own; a pair and an order have one for every attribute.
        reads = item.calls.groupby(keys, sort=True).size()
        whole["judgments"] = [int(reads[tuple(key)]) for key in whole[keys].itertuples(index=False)]
    rest = add_time(call_plan(left, transports), seen_rates(runs, root, item), transports)
    columns = ["calls", "price_estimated", "price_most", "seconds_estimated", "seconds_least", "time_reason"]
    renamed = {name: f"{name}_to_ask" for name in ("calls", "price_estimated", "price_most")}
    table = whole.merge(rest[[*keys, *columns]].rename(columns=renamed), on=keys, how="left")
    # What is all kept takes nothing more.
    done = table["calls_to_ask"].isna()
    for name in ("calls_to_ask", "seconds_estimated", "seconds_least"):
        table[name] = table[name].mask(done, 0)
    for name in ("price_estimated_to_ask", "price_most_to_ask"):
        table[name] = table[name].mask(done & table["price_known"].astype(bool), 0.0)
    table["time_reason"] = table["time_reason"].fillna("")
    table.insert(0, "pipeline", item.pipeline)
    return table.astype({"calls_to_ask": "int64"})


def _as_json(env: str | None, tables: list[pd.DataFrame]) -> str:
    rows = [row for table in tables for row in table.to_dict("records")]
    clean = [{name: _known(value) for name, value in row.items()} for row in rows]
    total = {name: sum(row[name] for row in clean) for name in (*_SUMMED, "calls_to_ask")}
    document = {"environment": environment_label(env), "rows": clean, "total": total}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def _known(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value.item() if hasattr(value, "item") else value


def _say(item: Any, table: pd.DataFrame) -> None:
    click.secho(f"{item.pipeline}", bold=True)
    if table.empty:
        click.echo("  no pair is judged, so nothing is asked")
        return
    heads = ["judge", "protocol", "constraint", "judgments", "calls", "to ask", "tokens in", "(at most)",
             "out at most", "to pay", "(at most)", "time"]  # fmt: skip
    rows = [heads] + [_cells(row) for row in table.to_dict("records")]
    if len(table) > 1:
        rows.append(_cells(_total(table)))
    widths = [max(len(row[k]) for row in rows) for k in range(len(heads))]
    for row in rows:
        text = [c.ljust(w) if k < 3 else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))]
        click.echo("  " + "  ".join(text).rstrip())
    if not table["price_known"].all():
        unpriced = ", ".join(sorted(set(table.loc[~table["price_known"].astype(bool), "judge_id"])))
        click.echo(f"  No price is set for {unpriced}: transport.price in the judge's parameters.")
    if (table["time_reason"] != "").any():
        never = ", ".join(sorted(set(table.loc[table["time_reason"] != "", "judge_id"])))
        click.echo(f"  How fast {never} answers is not known yet (never_asked): no time is told for it.")
    _say_budget(item, table)


def _total(table: pd.DataFrame) -> dict[str, Any]:
    summed = {name: table[name].sum() for name in (*_SUMMED, "calls_to_ask")}
    for name in ("price_estimated_to_ask", "price_most_to_ask", "seconds_estimated"):
        # A sum over what is not known is not known.
        summed[name] = table[name].sum(skipna=False)
    reason = "never_asked" if (table["time_reason"] != "").any() else ""
    return {"judge_id": "total", "protocol": "", "constraint": "", "time_reason": reason, **summed}


def _cells(row: Mapping[Any, Any]) -> list[str]:
    counts = [f"{int(row[name]):,}" for name in ("judgments", "calls", "calls_to_ask", *_SUMMED[2:])]
    prices = [_price(row[name]) for name in ("price_estimated_to_ask", "price_most_to_ask")]
    time = row["seconds_estimated"]
    shown = "not known" if _known(time) is None else _duration(float(time))
    return [str(row[name]) for name in ("judge_id", "protocol", "constraint")] + counts + prices + [shown]


def _price(value: Any) -> str:
    return "not known" if _known(value) is None else f"{float(value):.4f}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _say_budget(item: Any, table: pd.DataFrame) -> None:
    budget = item.options.asking.budget
    tokens = int(table["prompt_tokens_most"].sum() + table["completion_tokens_most"].sum())
    if budget.tokens is not None and tokens > budget.tokens:
        click.secho(
            f"  At most {tokens:,} tokens are above the budget of {budget.tokens:,}: the run may stop early.",
            fg="yellow",
        )
    money = table["price_most"].sum(skipna=False)
    if budget.money is not None and not math.isnan(money) and money > budget.money:
        click.secho(
            f"  At most {money:.4f} is above the budget of {budget.money:g}: the run may stop early.",
            fg="yellow",
        )
