"""The data card: what was judged, where it comes from, and how the bank was checked."""

from __future__ import annotations

import pandas as pd

from judge_calibration.report.blocks import Block, Section
from judge_calibration.report.result_tables import Tables, plain_table, some


def data_section(tables: Tables) -> Section:
    """Return the section."""
    pairs = tables["pairs"]
    keys = ["source", "manipulation", "reference_kind"]
    counts = (
        pairs.groupby(keys, dropna=False, sort=True)
        .agg(pairs=("pair_id", "size"), base_tasks=("base_id", "nunique"))
        .reset_index()
    )
    is_judged = pairs["pair_id"].isin(set(tables["judged_pairs"]["pair_id"]))
    counts["judged"] = is_judged.groupby([pairs[k] for k in keys], dropna=False, sort=True).sum().to_numpy()
    blocks: list[Block] = [
        plain_table("data-table", "Pairs", "Kinds of reference are never merged.", counts),
        plain_table(
            "data-card",
            "Data card",
            "Each source with its licences, languages, domains, stakes and sentinels.",
            _card(pairs),
        ),
    ]
    for name, title in (
        ("bank_design_check", "Design check of the bank"),
        ("source_files", "Files that were read"),
        ("split_report", "The 75/25 split"),
    ):
        frame = some(tables, name)
        if frame is not None:
            blocks.append(plain_table(name.replace("_", "-"), title, "", frame))
    lead = "What was judged, where it comes from, and how the bank was checked."
    return Section("data", "Data card", lead, blocks)


def _card(pairs: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for source, own in pairs.groupby("source", sort=True):
        rows.append(
            {
                "source": source,
                "pairs": len(own),
                "base_tasks": own["base_id"].nunique(),
                "licences": _values(own["license"]),
                "languages": _values(own["language"]),
                "domains": _values(own["domain"].str.replace("_", " ")),
                "stakes": _values(own["stakes"].str.replace("_", " ")),
                "sentinels": int(own["sentinel"].sum()),
                "without_reference": int(own["reference_label"].isna().sum()),
                "without_texts": int(own["response_a"].isna().sum()),
            }
        )
    return pd.DataFrame(rows)


def _values(values: pd.Series, most: int = 8) -> str:
    counts = values.dropna().value_counts()
    if counts.empty:
        return "not told"
    named = [f"{name} {count:,}" for name, count in counts.head(most).items()]
    return ", ".join(named) + (f", {len(counts) - most} more" if len(counts) > most else "")
