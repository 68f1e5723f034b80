"""The page of a layout in the docs, written from its description so that the two cannot differ.

``python -m judge_calibration.sources.pages docs/sources`` writes all pages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from judge_calibration.options.layout import Codes, FieldFrom, Layout, OutcomeRule, Scalar
from judge_calibration.sources.layouts import layout_names, load_layout

_ORDER = {
    "identity": "`identity`: values name the candidate; a second order is already mapped back.",
    "shown": "`shown`: values name the place (first or second shown); the row's order maps them back.",
}


def page_of(layout: Layout) -> str:
    """Return the layout's page as Markdown: where it was seen, and how ties, orders and nulls are coded."""
    status = (
        f"Verified: read in {layout.seen}."
        if layout.status == "verified"
        else f"**Unverified**: {layout.seen}. Compare a few rows by hand before you rely on it."
    )
    facts = [
        ("Rows are", layout.kind),
        ("Format", _format(layout)),
        ("Licence", layout.licence or "not stated by the layout; set it with `set: {licence: ...}`"),
        ("References", f"made by: {layout.reference_kind}" if layout.reference_kind else "none declared"),
        ("Order", _ORDER[layout.order_mode]),
    ]
    lines = [f"# {layout.title}", "", f"Layout `{layout.layout}`. {status}", ""]
    lines += ["```yaml", f"- {{path: FILE, layout: {layout.layout}}}", "```", ""]
    lines += ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts)]
    lines += ["", "## Where values stand", "", "| field | taken from |", "|---|---|"]
    lines += [f"| {name} | {_told(field)} |" for name, field in layout.fields.items()]
    if layout.shown:
        lines += [f"| shown first, second | {_told(layout.shown.first)}, {_told(layout.shown.second)} |"]
    if layout.conversation:
        sides = f"{_told(layout.conversation.a)} and {_told(layout.conversation.b)}"
        if layout.conversation.asked:
            sides += f", answers to {_told(layout.conversation.asked)},"
        lines += [f"| question, answers | what {sides} share at their start; the rest of each |"]
    lines += [f"| (rows) | {_expansion(step.kind, step.columns or step.by)} |" for step in layout.expand]
    lines += _codes("Labels and verdicts", layout.codes) + _codes("Reference labels", layout.reference_codes)
    if not layout.order_recorded:
        lines += [
            "",
            "The log does not tell which answer was shown first. Its rows stand under order AB with the flag",
        ]
        lines += ["`order_not_recorded`: nothing that needs both orders can be computed."]
    if layout.votes:
        lines += ["", "The label is counted from votes: most votes win, no single winner is a TIE."]
    if "order" in layout.fields:
        codes = layout.order_codes
        lines += [
            "",
            f"Orders: {_values(codes.AB)} shows candidate A first, {_values(codes.BA)} candidate B.",
        ]
    if layout.outcomes:
        lines += ["", "## No verdict", "", "| outcome | when |", "|---|---|"]
        lines += [f"| {rule.outcome} | {_when(rule)} |" for rule in layout.outcomes]
    changed = layout.rules.model_dump(exclude_defaults=True)
    if changed:
        lines += ["", "## Rules", "", *(f"- `{name}: {value}`" for name, value in changed.items())]
    if layout.notes:
        lines += ["", "## Mind", "", *(f"- {note}" for note in layout.notes)]
    return "\n".join(lines) + "\n"


def _format(layout: Layout) -> str:
    return (
        "by the file's name"
        if layout.format == "auto"
        else f"{layout.format}, unless the file's name says another"
    )


def _told(field: FieldFrom) -> str:
    if field.column is not None:
        text = f"`{field.column}`"
    elif "const" in field.model_fields_set:
        text = "nothing" if field.const is None else f"always `{field.const}`"
    elif field.file is not None:
        text = f"the file's path (`{_cell(field.file)}`)"
    elif field.join:
        text = f" `{field.separator}` ".join(_told(part) for part in field.join)
    else:
        text = "the first of " + ", ".join(_told(part) for part in field.any_of)
    if field.json_text:
        text += f" (JSON as text{', at `' + field.path + '`' if field.path else ''})"
    if field.match:
        text += f", the part that matches `{_cell(field.match)}`"
    if field.replace:
        text += ", " + ", ".join(f"`{old}` read as `{new}`" for old, new in field.replace.items())
    return text + (" if there is one" if field.optional else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _expansion(kind: str, columns: Iterable[str]) -> str:
    names = ", ".join(f"`{name}`" for name in columns)
    return {
        "parallel": f"one for each element of {names}, side by side",
        "elements": f"one for each element of {names}",
        "chosen_rejected": f"one for each combination of {names}",
        "scored": f"one for each two of {names}; the higher score is chosen, equal scores are a tie",
        "edges": f"one for each preference in {names}",
        "orders": f"two, one for each order, from {names}",
        "grouped": f"records with the same {names} are answers to one question; one row for each two of them",
    }[kind]


def _values(values: Iterable[Scalar]) -> str:
    return ", ".join(
        "null" if value is None else "`(empty)`" if value == "" else f"`{str(value).lower()}`"
        if isinstance(value, bool) else f"`{value}`"
        for value in values
    )  # fmt: skip


def _codes(title: str, codes: Codes | None) -> list[str]:
    if codes is None:
        return []
    lines = ["", f"## {title}", "", "| meaning | values in the file |", "|---|---|"]
    for name in ("A", "B", "first", "second", "TIE", "ABSTAIN", "none"):
        values = getattr(codes, name)
        if values:
            lines.append(f"| {'no label' if name == 'none' else name} | {_values(values)} |")
    if codes.numeric:
        n = codes.numeric
        lines.append(
            f"| {n.low} | from {n.lowest} to below {n.tie_from}; up to {n.tie_to} a TIE; above, the other |"
        )
    lines += ["", "Any other value is refused, with its file, row and column."]
    return lines


def _when(rule: OutcomeRule) -> str:
    if rule.column is None:
        return "no verdict, for no cause named above"
    tests = [_values(rule.values)] if rule.values else []
    tests += [f"a match of `{_cell(rule.matches)}`"] if rule.matches else []
    over = "also where the file states a verdict: " if rule.over_verdict else ""
    return f"{over}{_told(rule.column)} is {' or '.join(tests)}"


def write_pages(folder: Path) -> list[Path]:
    """Write the page of every packaged layout and an index; return what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    layouts = [load_layout(name) for name in layout_names()]
    written = []
    for layout in layouts:
        path = folder / f"{layout.layout}.md"
        path.write_text(page_of(layout), "utf-8")
        written.append(path)
    index = folder / "index.md"
    index.write_text(_index(layouts), "utf-8")
    return [*written, index]


def _index(layouts: list[Layout]) -> str:
    intro = (files("judge_calibration.sources") / "layouts" / "README.md").read_text("utf-8")
    lines = ["", "| layout | rows | licence | seen |", "|---|---|---|---|"]
    for layout in layouts:
        seen = layout.status if layout.status == "unverified" else "verified"
        lines.append(
            f"| [{layout.layout}]({layout.layout}.md): {layout.title} | {layout.kind} "
            f"| {layout.licence or '-'} | {seen} |"
        )
    return intro + "\n".join(lines) + "\n"


if __name__ == "__main__":
    for page in write_pages(Path(sys.argv[1])):
        print(page)
