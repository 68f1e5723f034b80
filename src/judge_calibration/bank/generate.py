"""Controlled pairs from anyone's own responses.

Length and style variants are made by rule: sentences are repeated, or the form is changed and every
sentence is kept, so that nobody has to read them. Correctness and citation variants need judgement: a model
proposes a change (see :mod:`judge_calibration.bank.proposals`), a person accepts or refuses it in a review
file, and only what was accepted becomes a pair.

From a shell, for responses in a file with the columns ``response_id``, ``question`` and ``response``::

    python -m judge_calibration.bank.generate responses.jsonl pairs.parquet --style bullets --style bold
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from judge_calibration.bank import words
from judge_calibration.bank.build import CANONICAL, EXPECTS_TIE, QUALITY_GAP, content_hash_of
from judge_calibration.bank.diffs import differences
from judge_calibration.bank.tasks import BankError, Style
from judge_calibration.bank.transforms import restyle
from judge_calibration.bank.variants import draw
from judge_calibration.errors import JudgeCalibrationError, Problem
from judge_calibration.options.bank import GenerateOptions, LengthRule, StyleRule
from judge_calibration.schemas import PAIRS, conform
from judge_calibration.text import canonical_json, sha256_of, to_storable

REQUIRED = ("response_id", "question", "response")
CARRIED = ("domain", "difficulty", "language", "stakes", "source_packet", "source_packet_ids", "license")
"""Columns that go into the pairs as they are, where the responses have them."""


@dataclass(frozen=True)
class Made:
    """A changed response, and what was done to it."""

    manipulation: str
    variant: str
    answer: str
    note: str
    severity: str | None = None


def generate_pairs(responses: pd.DataFrame, options: GenerateOptions | None = None) -> pd.DataFrame:
    """Make length and style pairs of responses, by rule.

    Parameters
    ----------
    responses : pandas.DataFrame
        ``response_id`` (unique), ``question``, ``response``, and any of :data:`CARRIED`.
    options : GenerateOptions, optional
        Which rules; every rule gives one pair a response.

    Returns
    -------
    pandas.DataFrame
        The table `pairs`; every pair expects a TIE. A rule that would change nothing (``plain`` on a
        response without mark-up) gives no pair.

    Raises
    ------
    BankError
        If responses are missing, empty or share an id; every fault in one report.

    Examples
    --------
    >>> frame = pd.DataFrame({"response_id": ["r1"], "question": ["Why salt?"],
    ...                       "response": ["Salt melts ice. It lowers the freezing point."]})
    >>> pairs = generate_pairs(frame, GenerateOptions(length=("repeat",), style=("bullets",)))
    >>> pairs[["variant", "expected"]].values.tolist()
    [['repeat', 'TIE'], ['bullets', 'TIE']]
    """
    options = options or GenerateOptions()
    check_responses(responses)
    made = []
    for response in responses.to_dict("records"):
        text = response["response"]
        variants = [_longer(text, rule, options) for rule in options.length]
        variants += [_restyled(text, rule, options) for rule in options.style]
        made += [(response, variant) for variant in variants if variant.answer != text]
    return pairs_of(made, options)


def check_responses(responses: pd.DataFrame) -> None:
    """Raise with everything that is wrong with a table of responses."""
    problems = [
        Problem("responses", f"no column {name}", ", ".join(REQUIRED))
        for name in REQUIRED
        if name not in responses
    ]
    if not problems:
        for name in REQUIRED:
            empty = responses[name].map(lambda value: not isinstance(value, str) or not value.strip())
            rows = [int(i) + 1 for i in empty.reset_index(drop=True)[lambda s: s].index[:5]]
            if rows:
                problems.append(Problem(f"responses, column {name}, rows {rows}", "no text", "text"))
        repeated = responses["response_id"][responses["response_id"].duplicated()].unique()
        problems += [Problem("responses, column response_id", repr(r), "a unique id") for r in repeated[:5]]
    if problems:
        raise BankError(
            f"The responses cannot be used: {len(problems)} problems.",
            problems,
            "correct the file of responses",
        )


def pairs_of(made: Sequence[tuple[dict[Any, Any], Made]], options: GenerateOptions) -> pd.DataFrame:
    """Put changed responses beside their originals; the changed one is B as often as A in each variant."""
    keyed = [
        (
            (variant.manipulation, variant.variant, draw("side", options.salt, response["response_id"])),
            response,
            variant,
        )
        for response, variant in made
    ]
    counts: Counter[tuple[str, str]] = Counter()
    rows = []
    for key, response, variant in sorted(keyed, key=lambda item: (item[0], item[1]["response_id"])):
        first = draw("first", options.salt, *key[:2]) % 2
        side = "AB"[(counts[key[:2]] + first) % 2]
        counts[key[:2]] += 1
        rows.append(_row(response, variant, side, options))
    frame = pd.DataFrame(rows, columns=None if rows else PAIRS.column_names)
    return conform(frame, PAIRS)


def _row(response: dict[Any, Any], variant: Made, side: str, options: GenerateOptions) -> dict[str, Any]:
    other = "B" if side == "A" else "A"
    answers = {side: variant.answer, other: response["response"]}
    expected = "TIE" if variant.manipulation in EXPECTS_TIE else other
    packet = response.get("source_packet")
    packet = canonical_json(packet) if isinstance(packet, list) else packet
    row = {name: response[name] for name in CARRIED if name in response}
    row |= {"source_packet": packet} if packet is not None else {}
    row |= {
        "pair_id": "g" + sha256_of([response["response_id"], variant.manipulation, variant.variant])[:12],
        "base_id": response["response_id"],
        "source": options.source,
        "stakes": response.get("stakes") or "ordinary",
        "manipulation": variant.manipulation,
        "variant": variant.variant,
        "severity": variant.severity,
        "modified": side,
        "question": response["question"],
        "response_a": answers["A"],
        "response_b": answers["B"],
        f"candidate_{side.lower()}": f"{variant.manipulation}:{variant.variant}",
        f"candidate_{other.lower()}": CANONICAL,
        "reference_label": expected,
        "reference_kind": "constructed",
        "expected": expected,
        "quality_gap": QUALITY_GAP.get(variant.severity or "", 0.0 if expected == "TIE" else float("nan")),
        "mutation_note": variant.note,
        "mutation_diff": canonical_json(differences(response["response"], variant.answer)),
        "sentinel": False,
        "license": response.get("license") or options.license,
        "provenance": "Made of the response with the id in base_id; the other answer is that response.",
        "content_hash": content_hash_of(
            response["question"], answers["A"], answers["B"], packet if isinstance(packet, str) else None
        ),
    }
    return {name: to_storable(value) if isinstance(value, str) else value for name, value in row.items()}


def _longer(text: str, rule: LengthRule, options: GenerateOptions) -> Made:
    target = options.ratio * words.count_words(text)
    made = _repeated(text, target) if rule == "repeat" else _restated(text, target, options.restate_with)
    return Made("length", rule, made, "What the answer says is said again; nothing new is claimed.")


def _repeated(text: str, target: float) -> str:
    """Say sentences again after the end of their paragraph, longest first, until the target is reached."""
    blocks = words.paragraphs(text)
    queue = [
        (words.count_words(sentence), -index, sentence)
        for index, block in enumerate(blocks)
        for sentence in words.sentences(block)
    ]
    again: dict[int, list[str]] = {}
    while queue and words.count_words(_with_repeats(blocks, again)) < target:
        for _, index, sentence in sorted(queue, reverse=True):
            again.setdefault(-index, []).append(sentence)
            if words.count_words(_with_repeats(blocks, again)) >= target:
                break
    return _with_repeats(blocks, again)


def _with_repeats(blocks: Sequence[str], again: dict[int, list[str]]) -> str:
    made = []
    for index, block in enumerate(blocks):
        repeats = again.get(index, [])
        if not repeats:
            made.append(block)
        elif "\n" in block:
            made += [block, " ".join(repeats)]
        else:
            made.append(" ".join([block, *repeats]))
    return "\n\n".join(made)


def _restated(text: str, target: float, opening: str) -> str:
    """Add a closing paragraph that says the sentences again in their order, until the target is reached."""
    sentences = words.sentences(text)
    closing: list[str] = []
    while sentences and words.count_words(" ".join([text, opening, *closing])) < target:
        closing.append(sentences[len(closing) % len(sentences)])
    return f"{text}\n\n{' '.join([opening, *closing])}" if closing else text


def _restyled(text: str, rule: StyleRule, options: GenerateOptions) -> Made:
    blocks = words.paragraphs(text)
    numbers = range(1, len(blocks) + 1)
    plain = [n for n in numbers if not re.match(r"\s*(#|>|[-*+•] |\d{1,2}[.)] |```|\|)", blocks[n - 1])]
    style = {
        "headings": Style(headings=dict(zip(plain, options.headings, strict=False))),
        "bullets": Style(bullets=tuple(plain)),
        "numbered": Style(numbered=tuple(plain)),
        "bold": Style(bold=_openings(text, [blocks[n - 1] for n in plain])),
        "emoji": Style(emoji={n: options.emoji[i % len(options.emoji)] for i, n in enumerate(plain)}),
        "one_paragraph": Style(join=len(plain) == len(blocks) and len(blocks) > 1),
        "plain": Style(strip=True),
    }[rule]
    made = restyle(text, style) if style != Style(strip=True) or words.without_markup(text) != text else text
    kept = Counter(words.sentences(made)) == Counter(words.sentences(text))
    # A rule that would break a sentence (an abbreviation's full stop, say) makes no pair of this response.
    return Made("style", rule, made if kept else text, f"The same sentences in another form: {rule}.")


def _openings(text: str, blocks: Sequence[str]) -> tuple[str, ...]:
    """Return the first few words of paragraphs, where they stand once in the text."""
    found = []
    for block in blocks:
        match = re.match(r"\S+(?:[ ]\S+){0,3}", block)
        if match and text.count(match.group()) == 1 and "*" not in match.group():
            found.append(match.group())
    return tuple(found)


def read_responses(path: Path) -> pd.DataFrame:
    """Read responses from Parquet, CSV or JSON lines."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.suffix == ".csv":
        return pd.read_csv(path, dtype=str)
    lines = path.read_text(encoding="utf-8").splitlines()
    return pd.DataFrame([json.loads(line) for line in lines if line.strip()])


def main(arguments: list[str] | None = None) -> int:
    """Make length and style pairs of a file of responses."""
    parser = argparse.ArgumentParser(
        prog="python -m judge_calibration.bank.generate", description=main.__doc__
    )
    parser.add_argument(
        "responses", type=Path, help="Parquet, CSV or JSON lines: response_id, question, response"
    )
    parser.add_argument("pairs", type=Path, help="the Parquet file to write")
    parser.add_argument("--length", action="append", help="a rule: repeat, restate; may be repeated")
    parser.add_argument(
        "--style", action="append", help="a rule: headings, bullets, numbered, bold, emoji, ..."
    )
    given = parser.parse_args(arguments)
    chosen = {name: tuple(rules) for name in ("length", "style") if (rules := getattr(given, name))}
    if chosen:
        chosen = {"length": (), "style": ()} | chosen
    try:
        pairs = generate_pairs(read_responses(given.responses), GenerateOptions.model_validate(chosen))
    except (JudgeCalibrationError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    pairs.to_parquet(given.pairs, index=False)
    print(f"{len(pairs)} pairs: {given.pairs}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
