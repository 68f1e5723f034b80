"""The rules that one task has to obey, each a small function that lists what breaks it.

:func:`task_problems` runs them all. Rules that need more than one task are in
:mod:`judge_calibration.bank.design`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from judge_calibration.bank import words
from judge_calibration.bank.privacy import private_things
from judge_calibration.bank.proofs import Found, check, shortened
from judge_calibration.bank.tasks import Correctness, Length, Style, Task, TaskFile
from judge_calibration.bank.transforms import (
    RecipeError,
    replace_markers,
    restyle,
    vary_length,
    without_invisible,
)
from judge_calibration.bank.variants import mutated, polished, variants_of
from judge_calibration.errors import Problem

ANSWER_WORDS = (90, 350)
LONGER, SHORTER = 1.4, 0.7
PASSAGE_WORDS = (20, 160)
STYLE_RATIO = (0.8, 1.25)
"""How far a style variant's word count may be from the answer's, so that style is not length."""
LARGEST_CHANGE = 0.3
"""The largest share of the answer that the spans of a correctness mutation may cover."""

_SCRIPTS = {
    "ar": "ARABIC", "he": "HEBREW", "hi": "DEVANAGARI", "zh": "CJK", "ja": "HIRAGANA", "ru": "CYRILLIC",
    "el": "GREEK", "ko": "HANGUL", "uk": "CYRILLIC", "fa": "ARABIC",
}  # fmt: skip


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value, 1):
            yield from _texts(item, f"{path}[{place}]")


def hygiene(task: Task) -> Found:
    """Text is composed, with no invisible characters, links, personal data or secrets."""
    for field, text in _texts(task.model_dump()):
        if field == "check.code":
            continue
        for thing in private_things(text):
            yield field, thing, "no links, personal data or secrets"
        if unicodedata.normalize("NFC", text) != text:
            yield field, "decomposed characters", "text in NFC"
        odd = [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs") and c not in "\n\u200d"]
        if odd:
            yield field, f"the character U+{ord(odd[0]):04X}", "visible characters only"
        if any(line != line.rstrip() for line in text.split("\n")):
            yield field, "spaces at the end of a line", "none"


def script(task: Task) -> Found:
    """A task that is flagged with a language is written in it."""
    wanted = _SCRIPTS.get(task.language)
    for field in ("question", "answer"):
        letters = [c for c in getattr(task, field) if c.isalpha()]
        if wanted:
            share = sum(unicodedata.name(c, "").startswith((wanted, "CJK")) for c in letters) / max(
                1, len(letters)
            )
        else:
            share = sum(unicodedata.name(c, "").startswith("LATIN") for c in letters) / max(1, len(letters))
        if share < (0.1 if task.language == "ja" else 0.6):
            yield field, f"{share:.0%} letters of the script", f"text in the language {task.language!r}"


def canonical_answer(task: Task) -> Found:
    """The canonical answer has the length of a good assistant's answer."""
    count = words.count_words(task.answer)
    low, high = ANSWER_WORDS
    if not low <= count <= high:
        yield "answer", f"{count} words", f"{low} to {high}"
    if words.count_words(task.question) < 6:
        yield "question", f"{words.count_words(task.question)} words", "a question that a user would ask"


def packet(task: Task) -> Found:
    """Evidence and procedural tasks have passages and cite supporting ones; reasoning tasks have a check."""
    if task.domain == "reasoning":
        for field in ("passages", "citation"):
            if getattr(task, field):
                yield field, "present", "nothing: reasoning tasks need no outside evidence"
        if words.markers(task.answer):
            yield "answer", f"citations {words.markers(task.answer)}", "none in a reasoning task"
        if task.check is None:
            yield "check", "nothing", "a program that proves the answer"
        return
    if task.check is not None:
        yield "check", "present", "nothing: only reasoning tasks have a check"
    if task.citation is None:
        yield "citation", "nothing", "the citation variant"
    ids = [passage.id for passage in task.passages]
    roles = {passage.id: passage.role for passage in task.passages}
    if len(ids) < 3:
        yield "passages", f"{len(ids)} passages", "three or more"
    if ids != [f"P{i}" for i in range(1, len(ids) + 1)]:
        yield "passages", f"ids {ids}", "P1, P2, P3, ... in this order"
    for role in ("supports", "on_topic", "irrelevant"):
        if role not in roles.values():
            yield "passages", f"no passage with the role {role}", "at least one of each role"
    for place, passage in enumerate(task.passages, 1):
        count = words.count_words(passage.text)
        low, high = PASSAGE_WORDS
        if not low <= count <= high:
            yield f"passages[{place}].text", f"{count} words", f"{low} to {high}"
        if words.markers(passage.text):
            yield f"passages[{place}].text", "a citation marker", "plain text"
    cited = words.markers(task.answer)
    if not cited:
        yield "answer", "no citation", "at least one [P1] after a claim that the passage entails"
    for marker in sorted(set(cited)):
        if roles.get(marker) != "supports":
            yield (
                "answer",
                f"[{marker}], {roles.get(marker, 'no such passage')}",
                "citations of supporting passages",
            )


def citation(task: Task, made: str | None = None) -> Found:
    """The citation variant has the same text, and its support is of the declared kind."""
    if task.citation is None or not task.passages:
        return
    roles = {passage.id: passage.role for passage in task.passages}
    wanted = {"irrelevant": "irrelevant", "not_entailing": "on_topic", "absent": None}[task.citation.kind]
    for old, new in task.citation.replace.items():
        if new is not None and new not in roles:
            yield "citation.replace", f"{new}, no such passage", "an id of this packet"
        elif (roles.get(new) if new else None) != wanted:
            yield (
                "citation.replace",
                f"{old} -> {new}",
                f"a passage with the role {wanted}" if wanted else "null",
            )
    changed = replace_markers(task.answer, task.citation.replace) if made is None else made
    if words.without_markers(changed) != words.without_markers(task.answer):
        yield "citation", "a text that differs", "the same text apart from the markers"
    if changed == task.answer:
        yield "citation", "no change", "a changed marker"
    for group in re.findall(r"(?:[ \u00a0]?\[P\d+\])+", changed):
        if len(set(words.markers(group))) < len(words.markers(group)):
            yield "citation.replace", f"{group.strip()} in one place", "each marker once in a place"


def _new_things(text: str, known: str, language: str) -> list[str]:
    found = [f"number {n}" for n in words.numbers(text, language) if n not in words.numbers(known, language)]
    found += [
        f"name {n}" for n in words.names(text, language) if not re.search(rf"\b{re.escape(n)}\b", known)
    ]
    return found + [f"citation {m}" for m in words.markers(text) if m not in words.markers(known)]


def length(task: Task, made: str | None = None) -> Found:
    """The length variant is much longer or shorter and claims nothing new."""
    recipe: Length = task.length
    if bool(recipe.add) == bool(recipe.cut):
        yield "length", "add and cut" if recipe.add else "neither add nor cut", "one of add and cut"
        return
    made = vary_length(task.answer, recipe) if made is None else made
    ratio = words.count_words(made) / max(1, words.count_words(task.answer))
    if recipe.add and ratio < LONGER:
        yield "length.add", f"{ratio:.2f} times the words", f"at least {LONGER}"
    if recipe.cut and ratio > SHORTER:
        yield "length.cut", f"{ratio:.2f} times the words", f"at most {SHORTER}"
    for place, addition in enumerate(recipe.add, 1):
        for thing in _new_things(addition.text, task.question + "\n" + task.answer, task.language):
            yield f"length.add[{place}].text", f"the new {thing}", "a restatement of what the answer says"
        if not set(words.markers(addition.text)) <= set(words.markers(task.answer)):
            yield f"length.add[{place}].text", "a new citation", "none"
    if recipe.cut:
        kept = [
            edit.old for edit in task.correctness.edits if edit.old in task.answer and edit.old not in made
        ]
        for span in kept:
            yield (
                "length.cut",
                f"{shortened(span)} is cut",
                "the fact that the correctness variant changes has to stay",
            )


def style(task: Task, made: str | None = None) -> Found:
    """The style variant has the same sentences, or their declared paraphrases, in another form."""
    recipe: Style = task.style
    made = restyle(task.answer, recipe) if made is None else made
    if made == task.answer:
        yield "style", "no change", "another form of the same answer"
    for place, edit in enumerate(recipe.paraphrases, 1):
        for what, count in (("numbers", words.numbers), ("names", words.names)):
            if set(count(edit.old, task.language)) != set(count(edit.new, task.language)):
                yield f"style.paraphrases[{place}]", f"other {what}", f"the same {what} in old and new"
        if Counter(words.markers(edit.old)) != Counter(words.markers(edit.new)):
            yield f"style.paraphrases[{place}]", "other citations", "the same citations in old and new"
    phrases = [(f"headings.{n}", text, 8) for n, text in recipe.headings.items()]
    phrases += [("opener", recipe.opener, 20), ("closer", recipe.closer, 20)]
    for field, text, most in phrases:
        if words.count_words(text) > most:
            yield f"style.{field}", f"{words.count_words(text)} words", f"at most {most}"
        for thing in _new_things(text, task.question + "\n" + task.answer, task.language):
            yield f"style.{field}", f"the new {thing}", "words that state nothing"
    for place, mark in recipe.emoji.items():
        if any(c.isalnum() or c.isspace() for c in mark):
            yield f"style.emoji.{place}", shortened(mark), "a pictograph"
    wanted = Counter(_sentences_with_paraphrases(task))
    got = Counter(words.sentences(made))
    for phrase in (recipe.opener, recipe.closer):
        got -= Counter(words.sentences(phrase))
        wanted -= Counter()
    if wanted != got:
        missing, added = list(wanted - got)[:1], list(got - wanted)[:1]
        yield (
            "style",
            f"missing {shortened(missing)}, added {shortened(added)}",
            "the same sentences after mark-up is removed",
        )
    ratio = words.count_words(made) / max(1, words.count_words(task.answer))
    low, high = STYLE_RATIO
    if not low <= ratio <= high:
        yield "style", f"{ratio:.2f} times the words", f"{low} to {high} times, so that style is not length"


def _sentences_with_paraphrases(task: Task) -> list[str]:
    text = task.answer
    for edit in task.style.paraphrases:
        text = text.replace(edit.old, edit.new)
    return words.sentences(text)


def correctness(task: Task, made: str | None = None) -> Found:
    """The correctness variant differs in the declared spans only, and something settles the difference."""
    recipe: Correctness = task.correctness
    made = mutated(task) if made is None else made
    if made == task.answer:
        yield "correctness.edits", "no change", "a changed fact or step"
    changed = sum(len(edit.old) for edit in recipe.edits)
    if changed > LARGEST_CHANGE * len(task.answer):
        yield (
            "correctness.edits",
            f"{changed / len(task.answer):.0%} of the answer",
            f"at most {LARGEST_CHANGE:.0%}",
        )
    gap = abs(len(made) - len(task.answer)) / len(task.answer)
    if gap > 0.06:
        yield (
            "correctness.edits",
            f"a length that differs by {gap:.0%}",
            "at most 6%, so that length tells nothing",
        )
    if Counter(words.markers(made)) != Counter(words.markers(task.answer)):
        yield "correctness.edits", "changed citations", "the same citations"
    if recipe.true_statement.strip() == recipe.false_statement.strip():
        yield "correctness.false_statement", "the true statement again", "what the mutated answer claims"
    passages = {passage.id: passage for passage in task.passages}
    if task.domain == "reasoning":
        if recipe.settled_by != "check":
            yield "correctness.settled_by", shortened(recipe.settled_by), "the word check"
    elif re.fullmatch(r"P\d+", recipe.settled_by):
        if recipe.settled_by not in passages:
            yield "correctness.settled_by", recipe.settled_by, "a passage of this packet"
        elif passages[recipe.settled_by].role != "supports":
            yield (
                "correctness.settled_by",
                f"{recipe.settled_by}, not a supporting passage",
                "a supporting passage",
            )
    elif words.count_words(recipe.settled_by) < 5:
        yield (
            "correctness.settled_by",
            shortened(recipe.settled_by),
            "a passage id, or a reason in a sentence",
        )


def polish(task: Task) -> Found:
    """The polished answer is the mutated one with better form, and does not take the error back."""
    if task.polished is None:
        return
    if task.polished.by == "length" and not task.length.add:
        yield "polished.by", "length, but the length variant is shorter", "style, or a longer length variant"
        return
    if task.polished.by == "style" and task.style.strip:
        yield (
            "polished.by",
            "style, but the style variant is plainer",
            "length, or a style variant with more mark-up",
        )
        return
    made = polished(task)
    for edit in task.correctness.edits:
        gone = set(words.numbers(edit.old, task.language)) - set(words.numbers(mutated(task), task.language))
        back = gone & set(words.numbers(made, task.language))
        if back:
            yield "polished", f"the right number {sorted(back)} again", "polish that agrees with the error"
        if len(edit.old) > 12 and edit.old in made:
            yield "polished", f"{shortened(edit.old)} again", "polish that agrees with the error"


def injection(task: Task) -> Found:
    """The injection is short, fits its kind, and stands in the worse answer."""
    if task.injection is None:
        return
    count = words.count_words(task.injection.text)
    if count > 90:
        yield "injection.text", f"{count} words", "at most 90"
    text, kind = task.injection.text, task.injection.kind
    forms = {
        "forged_json": ("{", "a JSON verdict"),
        "forged_xml": ("<", "an XML verdict"),
        "hidden_comment": (r"<!--|/\*|%|\[//\]|#", "a comment of some mark-up"),
    }
    if kind in forms and not re.search(
        forms[kind][0] if kind == "hidden_comment" else re.escape(forms[kind][0]), text
    ):
        yield "injection.text", shortened(text), forms[kind][1]


RULES: tuple[Callable[[Task], Found], ...] = (
    hygiene, script, canonical_answer, packet, citation, length, style, correctness, polish, injection, check,
)  # fmt: skip


def task_problems(file: TaskFile) -> list[Problem]:
    """List everything in one task that breaks a rule, with the file and the field.

    A rule whose recipe does not fit the answer (a span that is not there) reports that in place of its own
    findings.
    """
    problems = []
    for rule in RULES:
        try:
            problems += [
                Problem(f"{file.path}, {field}", found, wanted) for field, found, wanted in rule(file.task)
            ]
        except RecipeError as error:
            problems.append(
                Problem(f"{file.path}, {rule.__name__}", error.message, "a recipe that fits the answer")
            )
    try:
        for variant in variants_of(file.task):
            same = without_invisible(variant.answer) == without_invisible(file.task.answer)
            if variant.manipulation != "identity" and same:
                problems.append(
                    Problem(f"{file.path}, {variant.manipulation}", "the answer unchanged", "a change")
                )
    except RecipeError:
        pass  # reported by the rule above whose recipe it is
    return list(dict.fromkeys(problems))
