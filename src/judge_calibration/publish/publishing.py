"""Check a run for publication, and write the folder."""

from __future__ import annotations

import csv
import io
import json
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge_calibration.errors import Problem, ProblemsError, RunError
from judge_calibration.judges.failures import Attempt
from judge_calibration.judges.store import OpenShard, StoreReader, shard_name
from judge_calibration.labelling.identity import is_pseudonym
from judge_calibration.publish.card import data_card
from judge_calibration.publish.croissant import describe
from judge_calibration.publish.detectors import Finding, check_installed, find_personal, find_secrets
from judge_calibration.publish.given import PUBLICATION
from judge_calibration.publish.licences import PROJECTS_OWN, licences_of
from judge_calibration.publish.review import Review
from judge_calibration.publish.selection import PublishedFile, Selection, select
from judge_calibration.publish.sentinel import find_private, private_texts
from judge_calibration.publish.texts import Text, strings_of, texts_of
from judge_calibration.runs import files, manifest
from judge_calibration.runs.environment import code_state
from judge_calibration.runs.results import path_in

SUMS = "SHA256SUMS"
_CODE_NAME = re.compile(
    r"((annotator|rater|expert|author|person|labell?er|judge|adjudicator|ann|(arena_)?user|(crowd)?worker|voter"
    r"|participant|subject|coder|reviewer)[_-]?)?([a-z]?|[a-z]?[0-9]{1,9})"
)
_SHARD = 50_000


class PublicationRefusedError(ProblemsError):
    """A run that must not be published as it is: every reason in one report."""

    shown = 10_000

    def __init__(
        self,
        message: str,
        problems: Iterable[Problem],
        next_step: str = "",
        findings: Iterable[Finding] = (),
        unlicensed: Iterable[Problem] = (),
    ) -> None:
        super().__init__(message, tuple(problems), next_step)
        self.findings = tuple(findings)
        self.unlicensed = tuple(unlicensed)
        self.args = (message, self.problems, next_step, self.findings, self.unlicensed)


@dataclass(frozen=True)
class Project:
    """Where things are."""

    root: Path
    package: Path
    data: Path


@dataclass(frozen=True)
class Checked:
    """A run that was looked through.

    Attributes
    ----------
    selection : Selection
        What belongs to it.
    licences : dict
        By path: the licence and how it is known.
    problems : tuple of Problem
        Why it must not be published; none if it may.
    unlicensed : tuple of Problem
        Those of them that a declared licence mends.
    findings : tuple of Finding
        What the detectors found and nobody has reviewed.
    """

    selection: Selection
    licences: dict[str, tuple[str, str]]
    problems: tuple[Problem, ...]
    unlicensed: tuple[Problem, ...]
    findings: tuple[Finding, ...]


def check(
    run_id: str,
    project: Project,
    review: Review,
    parameters: Mapping[str, Any] | None = None,
    private: Iterable[Path] = (),
) -> Checked:
    """Look through everything that would be published.

    Parameters
    ----------
    run_id : str
        A run that finished.
    project : Project
        Where it is.
    review : Review
        What a person has declared.
    parameters : mapping, optional
        Today's parameters of the run's environment; they have to be those of the run.
    private : iterable of pathlib.Path
        Folders of private sentinels, beside those that manifests name.

    Raises
    ------
    RunError
        There is no such run, or it did not finish.
    DetectorError
        A detector is not installed.
    """
    check_installed()
    selection = select(run_id, project.data, project.root, project.package)
    problems = list(selection.problems)
    problems += _not_repeatable(selection, project, parameters)
    problems += _private_pairs(selection)
    licences, unlicensed = licences_of(selection, project.root, review)
    accepted = {entry.id for entry in review.findings}
    found = [
        finding
        for finding in _findings(selection, project, private)
        if finding.kind == "private sentinel" or finding.id not in accepted
    ]
    problems += unlicensed
    problems += [_as_problem(finding) for finding in found]
    return Checked(selection, licences, tuple(problems), tuple(unlicensed), tuple(found))


def publish(
    run_id: str,
    folder: Path,
    project: Project,
    review: Review,
    review_text: str = "",
    parameters: Mapping[str, Any] | None = None,
    private: Iterable[Path] = (),
) -> Checked:
    """Write a run as a folder that others can check without us.

    Parameters
    ----------
    run_id : str
        A run that finished.
    folder : pathlib.Path
        It must not exist, or be empty.
    project, review, parameters, private
        As in :func:`check`.
    review_text : str
        The review as its author wrote it, kept as ``REVIEW.yml``.

    Raises
    ------
    PublicationRefusedError
        With every reason; then nothing is written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder} is there and is not empty.", "name a folder that does not exist yet")
    checked = check(run_id, project, review, parameters, private)
    if checked.problems:
        raise PublicationRefusedError(
            f"The run {run_id} is not published, for {_reasons(checked.problems)}; nothing was written.",
            checked.problems,
            "mend what is wrong; where a finding is harmless or a licence is known, declare it with a "
            "reason: --propose review.yml writes a form, --review review.yml uses it (docs/publishing.md)",
            checked.findings,
            checked.unlicensed,
        )
    part = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    with files.explained(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.mkdir()
            _write(checked, part, project, review, review_text)
            if folder.exists():
                folder.rmdir()
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return checked


# ------------------------------------------------------------------------------------------- checks


def _not_repeatable(
    selection: Selection, project: Project, parameters: Mapping[str, Any] | None
) -> Iterator[Problem]:
    """Yield why today's files would not give what the run gave; running again costs nothing then."""
    content = selection.run.content
    wanted = "those of the run. Run it again (kept answers are not asked for twice) and publish that run"
    now = code_state(project.root, project.package)
    if now["sha256"] != content["code"]["sha256"]:
        changed = _differing(content["code"]["files"], now["files"])
        yield Problem("the code", f"{len(changed)} changed files, such as {changed[0]}", wanted)
    if parameters is not None:
        after = manifest.flattened(_used(manifest.without_secrets(parameters), content))
        changed = _differing(manifest.flattened(_used(content["parameters"], content)), after)
        if changed:
            yield Problem("the parameters", f"other values of {', '.join(changed[:5])}", wanted)


def _used(parameters: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the blocks of parameters that the run's nodes read; others are not what made its artifacts."""
    named = {name for node in content["nodes"] for name in node.get("parameters", ())}
    blocks = {name.removeprefix("params:").split(".")[0] for name in named}
    return {name: value for name, value in parameters.items() if name in blocks}


def _reasons(problems: Sequence[Problem]) -> str:
    return "1 reason" if len(problems) == 1 else f"{len(problems)} reasons"


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _private_pairs(selection: Selection) -> Iterator[Problem]:
    for run in selection.runs:
        named = (run.content["parameters"].get("data_prep") or {}).get("private_sentinel")
        if named:
            yield Problem(
                f"run {run.run_id}",
                "the pairs of a private sentinel (data_prep.private_sentinel)",
                "a run without it: kedro run --params data_prep.private_sentinel=null",
            )


def _findings(selection: Selection, project: Project, private: Iterable[Path]) -> Iterator[Finding]:
    runs = manifest.read_all(project.data / "runs")
    named = [(run.content.get("parameters", {}).get("data_prep") or {}) for run in runs]
    folders = [
        project.root / str(block["private_sentinel"]) for block in named if block.get("private_sentinel")
    ]
    bank = project.data / "01_raw" / "pair_bank"
    known = private_texts(runs, project.root, bank, [*dict.fromkeys(folders), *private])
    texts = list(_texts(selection, project))
    of_people = [text for text in texts if not text.where.startswith("code ")]
    yield from find_private(of_people, known)
    yield from find_personal(of_people, _machine(project.root))
    yield from find_secrets(texts)
    yield from _named_people(selection, project)


def _texts(selection: Selection, project: Project) -> Iterator[Text]:
    """Yield every different text that would be published, at its first place."""
    seen: set[str] = set()
    paths = {file.path for file in selection.files}
    for file in selection.files:
        # The CSV beside a table says the same.
        twin = file.kind == "artifact" and file.path.endswith(".csv") and _twin(file.path) in paths
        if twin or file.path.endswith((".lock", files.SIDECAR_SUFFIX)):
            continue
        name = f"code {file.path}" if file.kind == "code" else file.path
        for text in texts_of(_place(file, project), name):
            if text.text not in seen:
                seen.add(text.text)
                yield text
    for run in selection.runs:
        content = {key: value for key, value in run.content.items() if key not in ("process", "code")}
        for value in strings_of(content):
            if value not in seen:
                seen.add(value)
                yield Text(f"manifest of {run.run_id}", value)
    for store, ids in _stored(selection, project).items():
        reader = StoreReader(project.root / store)
        for attempt in reader.attempts(ids):
            for column in ("message", "body", "headers"):
                # A body is JSON: its numbers, such as the milliseconds that it took, are nobody's telephone.
                for value in strings_of(attempt[column] or ""):
                    if value not in seen:
                        seen.add(value)
                        yield Text(f"{store}, attempt at {attempt['call_id'][:12]}, {column}", value)
        for answer in reader.answers(ids).values():
            for part in (answer.text, answer.reasoning):
                if part and part not in seen:
                    seen.add(part)
                    yield Text(f"{store}, answer to {answer.call_id[:12]}", part)


def _twin(path: str) -> str:
    return f"{path.removesuffix('.csv')}.parquet"


def _machine(root: Path) -> list[str]:
    """Return the paths that tell who works here; that of an administrator tells nothing."""
    return sorted({str(path) for path in (root, Path.home()) if len(path.parts) > 2})


def names_somebody(annotator: str) -> bool:
    """Say whether what an annotator is called may be a name: it is no pseudonym, number or plain code name.

    Examples
    --------
    >>> [names_somebody(name) for name in ("annotator_12", "rater-b", "17", "ann_bcdfghjk")]
    [False, False, False, False]
    >>> [names_somebody(name) for name in ("annette", "annotator_jo", "jo@example.org")]
    [True, True, True]
    """
    return not is_pseudonym(annotator) and _CODE_NAME.fullmatch(annotator) is None


def _named_people(selection: Selection, project: Project) -> Iterator[Finding]:
    """Yield annotators who are not under a pseudonym or a code name that names nobody."""
    import pandas as pd

    told: set[str] = set()
    for run in selection.runs:
        for name in ("labels", "ai_labels", "adjudicated_labels", "labels_set_aside"):
            path = path_in(run, name, project.root)
            if path is None:
                continue
            frame = pd.read_parquet(path)
            if "annotator_id" not in frame.columns:
                continue
            ids = set(frame["annotator_id"].dropna().astype(str))
            for annotator in sorted(ids - told):
                if names_somebody(annotator):
                    told.add(annotator)
                    where = f"{files.relative(path, project.root)}, column annotator_id"
                    yield Finding("personal data", "an annotator who is no pseudonym", where, annotator)
        for annotator, where in _named_in_files(run, project.root):
            if annotator not in told and names_somebody(annotator):
                told.add(annotator)
                yield Finding("personal data", "an annotator who is no pseudonym", where, annotator)
        options = run.content["parameters"].get("annotation") or {}
        for entry in options.get("annotators") or ():
            code = str(entry.get("code"))
            if code not in told and names_somebody(code):
                told.add(code)
                yield Finding(
                    "personal data", "an annotator's code name", "parameter annotation.annotators", code
                )


def _named_in_files(run: manifest.Run, root: Path) -> Iterator[tuple[str, str]]:
    """Yield who labelled in the label files that are published as they came, and the file."""
    from judge_calibration.sources import SourceFile, read_labels

    for entry in (run.content["parameters"].get("data_prep") or {}).get("label_files") or ():
        path, layout = str(entry["path"]), str(entry["layout"])
        if "://" in path:
            continue  # it stays where everybody finds it
        own = layout.endswith((".yml", ".yaml"))
        source = SourceFile(
            path=str(root / path),
            layout=str(root / layout) if own else layout,
            set=dict(entry.get("set") or {}),
        )
        for annotator in sorted(set(read_labels([source]).labels["annotator_id"])):
            yield str(annotator), f"{path}, annotators"


def _as_problem(finding: Finding) -> Problem:
    wanted = (
        "nothing of it: this cannot be reviewed away"
        if finding.kind == "private sentinel"
        else f"no {finding.kind}, or a review of {finding.id}"
    )
    return Problem(finding.where, f"{finding.what}: {finding.shown}", wanted)


# ------------------------------------------------------------------------------------------ writing


def _place(file: PublishedFile, project: Project) -> Path:
    return file.place or project.root / file.path


def _stored(selection: Selection, project: Project) -> dict[str, list[str]]:
    """Return the calls of the runs by the store that holds their answers."""
    import pandas as pd
    import pyarrow.parquet as pq

    ids: set[str] = set()
    for file in selection.files:
        if file.kind != "artifact" or not file.path.endswith(".parquet"):
            continue
        path = project.root / file.path
        if "call_id" in pq.read_schema(path).names:
            ids |= set(pd.read_parquet(path, columns=["call_id"])["call_id"].dropna())
    return {store: sorted(ids) for store in selection.stores} if ids else {}


def _write(checked: Checked, part: Path, project: Project, review: Review, review_text: str) -> None:
    selection = checked.selection
    licences = dict(checked.licences)
    for file in selection.files:
        target = part / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_place(file, project), target)
    for run in selection.runs:
        # Host and process number tell nothing about the run, and something about its owner.
        folder = part / files.relative(run.folder, project.root)
        manifest.Run(folder, {**run.content, "process": {}}).save()
    answers = {}
    for store, ids in _stored(selection, project).items():
        answers[store] = _copy_store(project.root / store, part / store, ids)
    (part / "conf" / "local").mkdir(parents=True, exist_ok=True)
    (part / "conf" / "local" / ".gitkeep").touch()
    texts = {
        PUBLICATION: json.dumps({"run": selection.run.run_id, "given": selection.given}, indent=2) + "\n",
        "README.md": data_card(selection, project.root, licences, answers, review),
    }
    if review_text:
        texts["REVIEW.yml"] = review_text
    for name, text in texts.items():
        (part / name).write_text(text, encoding="utf-8", newline="\n")
    material = _material(selection, licences)
    written = sorted(path.relative_to(part).as_posix() for path in part.rglob("*") if path.is_file())
    for name in written:
        own = name in texts or name.startswith("conf/")
        licences.setdefault(name, PROJECTS_OWN if own else material)
    licences["LICENCES.csv"] = licences["croissant.json"] = PROJECTS_OWN
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["path", "licence", "how it is known"])
    rows.writerows([name, *licences[name]] for name in sorted(licences))
    (part / "LICENCES.csv").write_text(table.getvalue(), encoding="utf-8", newline="\n")
    digests = {name: files.sha256_of_file(part / name) for name in sorted({*written, "LICENCES.csv"})}
    description = describe(
        part,
        digests,
        _tables(selection),
        sorted({licence for licence, _ in licences.values()}),
        _about(selection, review),
    )
    text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    (part / "croissant.json").write_text(text, encoding="utf-8", newline="\n")
    digests["croissant.json"] = files.sha256_of_file(part / "croissant.json")
    sums = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    (part / SUMS).write_text(sums, encoding="utf-8", newline="\n")


def _copy_store(source: Path, target: Path, ids: list[str]) -> int:
    """Write the answers to these calls, and the attempts at them, as sealed shards."""
    reader = StoreReader(source)
    known = reader.answers(ids)
    names = Attempt._fields
    tried: dict[str, list[Attempt]] = {}
    for row in reader.attempts(ids):
        tried.setdefault(row["call_id"], []).append(Attempt(**{name: row[name] for name in names}))
    held = sorted({*known, *tried})
    for start in range(0, len(held), _SHARD):
        block = held[start : start + _SHARD]
        shard = OpenShard(target, shard_name(block))
        shard.write(
            [known[name] for name in block if name in known],
            [attempt for name in block for attempt in tried.get(name, ())],
        )
        shard.seal()
        shard.close()
    opened = target / "open"
    if opened.is_dir() and not any(opened.iterdir()):
        opened.rmdir()
    return len(known)


def _material(selection: Selection, licences: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """Return the licence of what a run made, for the answers and manifests beside its artifacts."""
    made = next((licences[file.path] for file in selection.files if file.kind == "artifact"), None)
    return made or PROJECTS_OWN


def _tables(selection: Selection) -> dict[str, str]:
    """Return the tables of the run itself: path by dataset."""
    outputs = selection.run.content["outputs"]
    return {name: item["path"] for name, item in outputs.items() if item["path"].endswith(".parquet")}


def _about(selection: Selection, review: Review) -> dict[str, str]:
    run = selection.run.content
    return {
        "name": f"judge-calibration-run-{selection.run.run_id.replace(':', '.')}",
        "description": "A run of judge-calibration: pairs of answers, verdicts of LLM judges in both orders "
        "and repeated, labels, statistics of how far the judges can be trusted, and what it takes to compute "
        "them again.",
        "version": "1.0.0",
        "date": str(run["finished_at"])[:10],
        "creator": review.reviewed_by,
        "collection": f"Made by `{run['command']}`; README.md says where the pairs are from.",
        "personal": "Annotators are under pseudonyms; README.md names the detectors and what they miss.",
    }
