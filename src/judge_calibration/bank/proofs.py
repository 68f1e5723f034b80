"""The proof of a reasoning task: its program's result beside the printed ones.

A result is compared at the precision that was printed. A program that holds an answer as a constant, or
only hands one of its numbers back, proves nothing and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

from judge_calibration.bank import words
from judge_calibration.bank.solving import CheckError, constants, only_returns_an_input, solve
from judge_calibration.bank.tasks import Task
from judge_calibration.bank.variants import mutated

Found = Iterator[tuple[str, str, str]]
"""Field, what was found, what was wanted."""


def shortened(text: object) -> str:
    """Return what to print of something that was found."""
    shown = repr(text)
    return shown if len(shown) <= 90 else shown[:87] + "..."


def value_of(printed: str) -> tuple[Decimal | Fraction, int] | None:
    """Read the first number of a printed result: its value and the decimals that are shown."""
    plain = words.western_digits(printed)
    fraction = re.search(r"(-?\d+)\s*/\s*(\d+)", plain)
    if fraction:
        return Fraction(int(fraction.group(1)), int(fraction.group(2))), 0
    match = re.search(r"[-−]?\d+(?:[.,]\d+)*", plain)
    if match is None:
        return None
    number = words.canonical_number(match.group().lstrip("-−"))
    shown = re.sub(r",(?=\d{3}(\D|$))", "", match.group())
    decimals = len(re.split(r"[.,]", shown)[1]) if re.search(r"[.,]", shown) else 0
    return Decimal(number) * (-1 if match.group()[0] in "-−" else 1), decimals


def agrees(result: Any, printed: str, value: Any = None) -> bool:
    """Whether what a check returned is what was printed, at the precision that was printed."""
    if value is not None:
        return _same(result, value)
    if isinstance(result, bool):
        return False
    if isinstance(result, str):
        return result.casefold().strip() == printed.casefold().strip()
    if not isinstance(result, int | float | Fraction):
        return False
    read = value_of(printed)
    if read is None:
        return False
    wanted, decimals = read
    if isinstance(wanted, Fraction):
        return abs(Fraction(result) - wanted) < Fraction(1, 10**9)
    exact = Fraction(result).limit_denominator(10**12) if isinstance(result, float) else Fraction(result)
    decimal = Decimal(exact.numerator) / Decimal(exact.denominator)
    unit = Decimal(1).scaleb(-decimals)
    return wanted in {decimal.quantize(unit, rounding) for rounding in (ROUND_HALF_UP, ROUND_HALF_EVEN)}


def _same(left: Any, right: Any) -> bool:
    if (
        isinstance(left, int | float | Fraction)
        and isinstance(right, int | float)
        and not isinstance(left, bool)
    ):
        return abs(float(left) - float(right)) <= 1e-6 * max(1.0, abs(float(right)))
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(_same(a, b) for a, b in zip(left, right, strict=True))
    return bool(left == right)


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _scalars(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _scalars(item)
    else:
        yield value


def _is_printed(value: Any, question: str, language: str) -> bool:
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, str):
        return value.casefold() in question.casefold()
    printed = words.numbers(question, language)
    forms = {Decimal(str(value)), Decimal(str(value)) * 100, -Decimal(str(value)), -Decimal(str(value)) * 100}
    if {words.canonical_number(f"{form:f}") for form in forms if form >= 0} & set(printed):
        return True
    small = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ]
    return language == "en" and value in range(13) and bool(re.search(rf"(?i)\b{small[value]}\b", question))


def check(task: Task) -> Found:
    """The program proves the canonical answer right and the mutated one wrong, and answers other numbers."""
    recipe = task.check
    if recipe is None:
        return
    try:
        result = solve(recipe.code, recipe.numbers)
        second = solve(recipe.code, recipe.second.numbers)
        held = constants(recipe.code)
    except CheckError as error:
        yield "check.code", str(error), "a program in the allowed subset that gives the answer"
        return
    if not agrees(result, recipe.answer, recipe.answer_value):
        yield (
            "check.answer",
            f"{shortened(recipe.answer)}; the program gives {shortened(result)}",
            "the program's answer",
        )
    if agrees(result, recipe.wrong, recipe.wrong_value):
        yield "check.wrong", shortened(recipe.wrong), "a result that the program refutes"
    if not isinstance(result, str) and recipe.wrong_value is None and value_of(recipe.wrong) is None:
        yield "check.wrong", shortened(recipe.wrong), "a number, or wrong_value beside it"
    if not _same(second, recipe.second.answer):
        yield (
            "check.second.answer",
            f"{shortened(recipe.second.answer)}; it gives {shortened(second)}",
            "the program's answer",
        )
    if _same(result, second):
        yield "check.second", f"the same answer {shortened(result)}", "numbers that have another answer"
    if set(recipe.numbers) != set(recipe.second.numbers):
        yield (
            "check.second.numbers",
            f"{sorted(recipe.second.numbers)}",
            f"the same names: {sorted(recipe.numbers)}",
        )
    telling = [result, second]
    telling += [read[0] for read in (value_of(recipe.answer), value_of(recipe.wrong)) if read]
    telling += [recipe.answer, recipe.wrong]
    for constant in held:
        if any(_same(t if not isinstance(t, Decimal) else float(t), constant) for t in telling):
            yield (
                "check.code",
                f"the constant {constant!r}, which is an answer",
                "code that computes the answer",
            )
    if only_returns_an_input(recipe.code):
        yield "check.code", "a program that returns one of its numbers", "code that computes the answer"
    for name, value in recipe.numbers.items():
        if name in recipe.implied:
            continue
        unseen = [v for v in _scalars(value) if not _is_printed(v, task.question, task.language)]
        if unseen:
            yield (
                f"check.numbers.{name}",
                f"{shortened(unseen[0])}, not in the question",
                "a number of the question, or a reason under implied",
            )
    for name in set(recipe.implied) - set(recipe.numbers):
        yield f"check.implied.{name}", "no such number", "a name of check.numbers"
    wrong = mutated(task)
    if recipe.answer not in task.answer:
        yield (
            "check.answer",
            f"{shortened(recipe.answer)}, not in the canonical answer",
            "the result as it is printed there",
        )
    if recipe.wrong not in wrong:
        yield (
            "check.wrong",
            f"{shortened(recipe.wrong)}, not in the mutated answer",
            "the result as it is printed there",
        )
    if recipe.wrong in task.answer:
        yield (
            "check.wrong",
            f"{shortened(recipe.wrong)}, in the canonical answer",
            "a longer span that only the mutated answer has",
        )
    if task.correctness.consequence == "consistent" and recipe.answer in wrong:
        yield (
            "check.answer",
            f"{shortened(recipe.answer)}, still in the mutated answer",
            "a consistent mutation, or consequence: inconsistent",
        )
