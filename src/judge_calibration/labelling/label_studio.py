"""Packets as Label Studio tasks with their labelling screen, and label rows from its JSON export.

Label Studio's community edition assigns no tasks to people, so every annotator gets a project of their own:
the tasks of one annotator and the screen. Texts are shown by ``Text``, which renders no markup.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from judge_calibration.errors import Problem, SourceError
from judge_calibration.labelling.label_rows import rows_frame
from judge_calibration.labelling.packets import attribute_slots
from judge_calibration.labelling.rubric import LABEL_TEXTS, REASON_TEXTS, rubric_text
from judge_calibration.labelling.spreadsheets import decode
from judge_calibration.options.annotation import LabelFileOptions

TASK_FIELDS = ["packet_id", "sequence", "question", "source_packet", "answer_a", "answer_b"]
OVERALL = "overall"
REASONS = "reason_codes"
COMMENT = "comment"


def tasks(packets: pd.DataFrame) -> list[dict[str, dict[str, Any]]]:
    """Return one annotator's packets as Label Studio tasks, in the order of the annotator's list.

    Parameters
    ----------
    packets : pandas.DataFrame
        Packets (packets.PACKET_COLUMNS) of one annotator.

    Returns
    -------
    list of dict
        ``{"data": {...}}`` with TASK_FIELDS, and ``mark`` where the packets are simulated. The annotator is
        not named: the project says whose it is.
    """
    slots = attribute_slots(packets)
    fields = [*TASK_FIELDS, *slots, *(f"{slot}_question" for slot in slots)]
    fields += ["mark"] if "mark" in packets.columns else []
    out = []
    for record in packets.to_dict("records"):
        data = {name: record[name] for name in fields}
        data["sequence"] = int(data["sequence"])
        out.append({"data": data})
    return out


def labelling_config(attributes: int = 0, simulated: bool = False) -> str:
    """Return the labelling screen: texts, A, B, tie and abstain, reason codes, attributes, a comment.

    Parameters
    ----------
    attributes : int, optional
        Attributes that each task asks; they appear once the overall preference is chosen.
    simulated : bool, optional
        Puts the word SIMULATED on the screen.

    Returns
    -------
    str
        XML of Label Studio 1.x.
    """
    from xml.etree import ElementTree as Xml  # only written here, never read

    view = Xml.Element("View", {"style": "max-width:1400px"})
    if simulated:
        Xml.SubElement(view, "Header", {"value": "SIMULATED", "size": "3"})

    def text(parent: Xml.Element, title: str, field: str) -> None:
        box = Xml.SubElement(parent, "View", {"style": "flex:1;padding:0 12px;min-width:0"})
        Xml.SubElement(box, "Header", {"value": title, "size": "4"})
        Xml.SubElement(box, "Text", {"name": field, "value": f"${field}", "granularity": "word"})

    text(view, "Question", "question")
    text(view, "Sources", "source_packet")
    answers = Xml.SubElement(view, "View", {"style": "display:flex;align-items:flex-start"})
    text(answers, "Answer A", "answer_a")
    text(answers, "Answer B", "answer_b")

    def choices(name: str, title: str, options: Mapping[str, str], **more: str) -> None:
        box = Xml.SubElement(view, "View", {"style": "padding:0 12px"})
        if "whenTagName" in more:
            box.set("visibleWhen", "choice-selected")
            box.set("whenTagName", more.pop("whenTagName"))
        Xml.SubElement(box, "Header", {"value": title, "size": "4"})
        element = Xml.SubElement(
            box, "Choices", {"name": name, "toName": "question", "showInline": "true", **more}
        )
        for value, shown in options.items():
            Xml.SubElement(element, "Choice", {"value": shown, "alias": value})

    choices(
        OVERALL,
        "Which answer is better?",
        LABEL_TEXTS,
        choice="single-radio",
        required="true",
        requiredMessage="Choose A, B, Tie or Abstain",
    )
    for slot in range(1, attributes + 1):
        name = f"attribute_{slot}"
        choices(name, f"${name}_question", LABEL_TEXTS, choice="single-radio", whenTagName=OVERALL)
    choices(REASONS, "What decided it?", REASON_TEXTS, choice="multiple")
    box = Xml.SubElement(view, "View", {"style": "padding:0 12px"})
    Xml.SubElement(box, "Header", {"value": "Comment (no names)", "size": "4"})
    Xml.SubElement(
        box,
        "TextArea",
        {"name": COMMENT, "toName": "question", "rows": "2", "maxSubmissions": "1", "editable": "true"},
    )
    guide = Xml.SubElement(view, "Collapse")
    panel = Xml.SubElement(guide, "Panel", {"value": "The rubric"})
    for line in rubric_text().splitlines():
        Xml.SubElement(panel, "Header", {"value": line, "size": "6"})
    Xml.indent(view)
    return Xml.tostring(view, encoding="unicode") + "\n"


def _who(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("email") or value.get("username") or value.get("id")
    return None if value is None or value == "" else str(value)


def _number(value: Any) -> Any:
    return value.get("id") if isinstance(value, dict) else value


def _who_changed(annotation: dict[str, Any]) -> str | None:
    """Return who changed an annotation last, where that is somebody else than who made it."""
    maker, changer = annotation.get("completed_by"), annotation.get("updated_by")
    if maker is None or changer is None or _number(maker) == _number(changer):
        return None
    return _who(changer)


def _begun_from(annotation: dict[str, Any], others: list[dict[str, Any]]) -> str | None:
    """Return what an annotation was begun from, if that was not its author's own judgement.

    Label Studio lets people begin from a prediction or copy an annotation: what was chosen there stands until
    it is changed. A copy of one's own is one's own.
    """
    if _number(annotation.get("parent_prediction")) is not None:
        return f"prediction {_number(annotation['parent_prediction'])}"
    copied = _number(annotation.get("parent_annotation"))
    if copied is None:
        return None
    makers = [_number(other.get("completed_by")) for other in others if other.get("id") == copied]
    maker = _number(annotation.get("completed_by"))
    own = maker is not None and makers == [maker]
    return None if own else f"annotation {copied}, of somebody else"


def _from_alias(choice: str, texts: Mapping[str, str]) -> str:
    # Exports hold the alias; exports of older versions hold the text on screen.
    for value, shown in texts.items():
        if choice in (value, shown):
            return value
    return choice


def _answers(result: list[Any]) -> dict[str, Any]:
    """Return what one annotation says: label, attributes, reason codes, comment."""
    out: dict[str, Any] = {"label": None, "attributes": {}, "reasons": [], "comment": None}
    for item in result:
        if not isinstance(item, dict) or not isinstance(item.get("value"), dict):
            continue
        value, name = item["value"], item.get("from_name")
        chosen = [str(choice) for choice in value.get("choices", [])]
        if name == OVERALL and chosen:
            # Several choices at once are kept as they are: no label is called so, and the row is refused.
            before = [] if out["label"] is None else [out["label"]]
            out["label"] = " and ".join([*before, *(_from_alias(choice, LABEL_TEXTS) for choice in chosen)])
        elif name == REASONS:
            out["reasons"] += [_from_alias(choice, REASON_TEXTS) for choice in chosen]
        elif name == COMMENT:
            texts = value.get("text", [])
            out["comment"] = " ".join(texts if isinstance(texts, list) else [str(texts)]).strip() or None
        elif isinstance(name, str) and name.startswith("attribute_") and chosen:
            before = [out["attributes"][name]] if name in out["attributes"] else []
            said = [_from_alias(choice, LABEL_TEXTS) for choice in chosen]
            out["attributes"][name] = " and ".join([*before, *said])
    return out


def read_export(data: bytes, options: LabelFileOptions) -> pd.DataFrame:
    """Return the label rows of a Label Studio JSON export.

    Parameters
    ----------
    data : bytes
        The file that "Export, JSON" gives (a list of tasks with their annotations).
    options : LabelFileOptions
        Its name, and whose labels it holds where the project has one annotator.

    Returns
    -------
    pandas.DataFrame
        Columns label_rows.ROW_COLUMNS; one row an annotation (and attribute). Skipped ones have state
        ``skipped``, tasks without an annotation ``open``; the time is that of the last update.

    Raises
    ------
    SourceError
        If the file is no such export; every task that does not fit is named.
    """
    name = options.path
    try:
        content = json.loads(decode(data, name))
    except json.JSONDecodeError as error:
        raise SourceError(
            f"{name} is no JSON.", [Problem(name, str(error), "Label Studio's JSON export")]
        ) from error
    if not isinstance(content, list):
        raise SourceError(
            f"{name} is no Label Studio export.",
            [Problem(name, f"a JSON {type(content).__name__}", "a list of tasks")],
            "export the project again and choose the format JSON",
        )
    problems: list[Problem] = []
    records: list[dict[str, object]] = []
    for number, task in enumerate(content, start=1):
        if (
            not isinstance(task, dict)
            or not isinstance(task.get("data"), dict)
            or "packet_id" not in task["data"]
        ):
            problems.append(Problem(f"{name}, task {number}", "no data.packet_id", "a task of this round"))
            continue
        if not isinstance(task.get("annotations"), list):
            problems.append(
                Problem(f"{name}, task {number}", "no list of annotations", "the format JSON (not JSON_MIN)")
            )
            continue
        if not all(isinstance(annotation, dict) for annotation in task["annotations"]):
            found = "an annotation without its answers (a number or a text)"
            problems.append(
                Problem(f"{name}, task {number}", found, "the format JSON, all annotations whole")
            )
            continue
        records += _task_records(task, number, name, options)
    if problems:
        raise SourceError(f"{name} is no Label Studio export of this round.", problems)
    return rows_frame(records)


def _task_records(
    task: dict[str, Any], number: int, name: str, options: LabelFileOptions
) -> list[dict[str, object]]:
    data = task["data"]
    place = f"task {number}" + (f" (id {task['id']})" if isinstance(task.get("id"), int) else "")
    common: dict[str, object] = {
        "file": name,
        "row": number,
        "place": place,
        "layout": "label_studio",
        "declared": options.annotator,
        "made_by": options.made_by,
        "packet_id": str(data["packet_id"]),
        "question": data.get("question"),
        "answer_a": data.get("answer_a"),
        "answer_b": data.get("answer_b"),
    }
    if not task["annotations"]:
        return [common | {"annotator": options.annotator, "state": "open"}]
    records: list[dict[str, object]] = []
    for annotation in task["annotations"]:
        # The project's one annotator is who is declared; otherwise each annotation says who made it.
        said_by = _who(annotation.get("completed_by"))
        says = _answers(annotation.get("result") or [])
        state = "skipped" if annotation.get("was_cancelled") else "completed"
        row = common | {
            "annotator": options.annotator or said_by,
            "said_by": said_by,
            "changed_by": _who_changed(annotation),
            "begun_from": _begun_from(annotation, task["annotations"]),
            "labelled_at": annotation.get("updated_at") or annotation.get("created_at"),
            "comment": says["comment"],
        }
        label = says["label"]
        if state == "completed" and label is None and not says["attributes"]:
            state = "empty"
        reasons = ";".join(says["reasons"]) or None
        records.append(
            row | {"label": label, "label_column": OVERALL, "reason_codes": reasons, "state": state}
        )
        if state == "completed":
            records += [
                row
                | {"attribute": data.get(slot, slot), "label": answer, "label_column": slot, "state": state}
                for slot, answer in says["attributes"].items()
            ]
    return records
