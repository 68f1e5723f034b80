"""The data card: what the folder holds, how to check it, where everything is from, and what it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from judge_calibration.publish.detectors import versions
from judge_calibration.publish.review import Review
from judge_calibration.publish.selection import Selection
from judge_calibration.runs.results import path_in


def data_card(
    selection: Selection,
    root: Path,
    licences: Mapping[str, tuple[str, str]],
    answers: Mapping[str, int],
    review: Review,
) -> str:
    """Return ``README.md``.

    Parameters
    ----------
    selection : Selection
        What is published.
    root : pathlib.Path
        The project.
    licences : mapping
        By path: licence, and how it is known.
    answers : mapping
        Number of answers by call store.
    review : Review
        What a person declared.
    """
    run = selection.run.content
    names = sorted({licence for licence, _ in licences.values()})
    return "\n".join(
        [
            "---",
            f"license: {names[0].lower() if len(names) == 1 else 'other'}",
            "tags: [llm-as-a-judge, evaluation, calibration]",
            "---",
            "",
            f"# Judge calibration: run {selection.run.run_id}",
            "",
            "One run of judge-calibration with everything that it takes to check it: the pairs, what was "
            "asked and answered, the labels of people under pseudonyms, the statistics, the report, the code "
            "and the lock of its environment.",
            "",
            "## To check it",
            "",
            "```",
            "sha256sum -c --quiet SHA256SUMS      # nothing was changed",
            "make env                             # the environment of the lock, in .venv",
            ".venv/bin/kedro audit                # every artifact against its own checksum",
            f".venv/bin/kedro reproduce {selection.run.run_id}",
            "```",
            "",
            "`kedro reproduce` computes every artifact again from the kept answers, without asking a model, "
            "and compares: byte by byte on the same platform, packages and BLAS kernel, else counts and text "
            "exactly and fitted numbers within 1e-8 relative.",
            *_given(selection),
            "",
            "## What is in it",
            "",
            "| | |",
            "| --- | --- |",
            f"| command | `{run['command']}` |",
            f"| ran | {run['started_at'][:10]}, {run['platform']['system']} {run['platform']['machine']}, "
            f"Python {run['platform']['python']}, {', '.join(run['platform']['blas']) or 'no BLAS'} |",
            f"| code | commit {run['code']['commit'] or 'not known'}"
            f"{', with changes' if run['code']['dirty'] else ''}; SHA-256 `{run['code']['sha256'][:16]}` |",
            f"| runs | {', '.join(one.run_id for one in selection.runs)} (`data/runs/*/manifest.json`) |",
            f"| pairs | {_size(selection, 'pairs', root)}, of which {_size(selection, 'judged_pairs', root)} "
            "were to be judged |",
            f"| verdicts | {_size(selection, 'verdicts', root)} |",
            f"| labels of people | {_size(selection, 'labels', root)}, annotators under pseudonyms |",
            *[f"| answers of models | {count} in `{store}` |" for store, count in answers.items()],
            f"| judges | {_judges(run)} |",
            "",
            "`data/03_primary` has pairs, packets and calls (each with its whole prompt), `data/04_feature` "
            "answers, verdicts and labels, `data/08_reporting` the statistics and the report; `conf/` the "
            "parameters; `croissant.json` describes every file and column.",
            "",
            "## Licences",
            "",
            "`LICENCES.csv` has the licence of every file and how it is known. What a run made of pairs "
            "carries the licences of all of its pairs. Answers of a model are also subject to its "
            "provider's terms.",
            "",
            "| licence | files |",
            "| --- | --- |",
            *[
                f"| {licence} | {count} |"
                for licence, count in sorted(Counter(name for name, _ in licences.values()).items())
            ],
            "",
            "## People and secrets",
            "",
            f"Looked through by {' and '.join(f'{name} {version}' for name, version in versions().items())} "
            "and patterns of the project's own. They miss names of people, postal addresses, dates of birth, "
            "most national identity numbers, telephone numbers without separators, keys in formats that no "
            "rule knows, and what is personal only in its context.",
            *_reviewed(review),
            "",
            "## Limits",
            "",
            "The report's last section has the limits of the method that apply to this run. A public set of "
            "pairs becomes familiar to models in time: keep a private sentinel beside it. Nothing of one is "
            "in here.",
            "",
        ]
    )


def _given(selection: Selection) -> list[str]:
    if not selection.given:
        return []
    return [
        "",
        "The labelling round is taken as it is: its ids are keyed with a secret, or its label files name "
        "people, and neither is published. Everything that is computed from the labels is computed again.",
    ]


def _size(selection: Selection, name: str, root: Path) -> str:
    path = path_in(selection.run, name, root)
    return "none" if path is None else f"{len(pd.read_parquet(path, columns=[]))}"


def _judges(run: Mapping[str, Any]) -> str:
    judges = (run["parameters"].get("judging") or {}).get("judges") or []
    return ", ".join(f"{judge.get('judge_id')} ({judge.get('model')})" for judge in judges) or "none"


def _reviewed(review: Review) -> list[str]:
    if not review.findings and not review.licences:
        return ["", "They found nothing."]
    return [
        "",
        f"{len(review.findings)} findings and {len(review.licences)} licences were looked at and declared "
        f"by {review.reviewed_by}: `REVIEW.yml` has the reasons.",
    ]
