"""Check a bank's files: ``python -m judge_calibration.bank FOLDER [--task t001 ...]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from judge_calibration.bank.build import build_pairs
from judge_calibration.bank.design import design_problems
from judge_calibration.bank.leaks import leak_tests
from judge_calibration.bank.rules import task_problems
from judge_calibration.bank.tasks import BankError, load_bank, read_task
from judge_calibration.bank.variants import variants_of
from judge_calibration.bank.words import count_words
from judge_calibration.errors import JudgeCalibrationError, Problem


def main(arguments: list[str] | None = None) -> int:
    """Print every fault of the bank, or of the named tasks alone; return 0 if there is none."""
    parser = argparse.ArgumentParser(prog="python -m judge_calibration.bank", description=__doc__)
    parser.add_argument("folder", type=Path, help="the bank: it holds bank.yml and tasks/")
    parser.add_argument("--task", action="append", default=[], help="check this task alone; may be repeated")
    parser.add_argument("--show", action="store_true", help="print every variant that the tasks make")
    options = parser.parse_args(arguments)
    names = options.task or sorted(path.stem for path in (options.folder / "tasks").glob("*.yml"))
    problems: list[Problem] = []
    for name in names:
        path = options.folder / "tasks" / f"{name}.yml"
        if not path.is_file():
            problems.append(Problem(str(path), "no such file", "a task file"))
            continue
        file, found = read_task(path.read_bytes(), f"tasks/{path.name}")
        found = found + (task_problems(file) if file else [])
        problems += found
        if file and options.show:
            try:
                answer = file.task.answer
                print(f"=== {name}: the canonical answer, {count_words(answer)} words\n{answer}\n")
                for variant in variants_of(file.task):
                    print(f"--- {name}: {variant.manipulation}, {variant.variant}\n{variant.answer}\n")
            except JudgeCalibrationError as error:
                print(f"--- {name}: {error}\n")
        print(f"{name}: {'fine' if file and not found else f'{len(found)} faults'}")
    if not options.task and not problems:
        try:
            bank = load_bank(options.folder)
            pairs = build_pairs(bank)
            problems += design_problems(bank, pairs, leak_tests(pairs))
        except BankError as error:
            problems += error.problems
        print(f"the bank as a whole: {f'{len(problems)} faults' if problems else 'fine'}")
    for problem in problems:
        print(f"  - {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
