"""Every command that the documentation shows: run under the environment `test`, or named with a reason.

`make test` runs each of our commands; `make test-slow` every variant of `kedro run` that a page shows, too.
"""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from test_docs import PAGES, commands_in, words_of

NOT_RUN = {
    r"kedro$|kedro COMMAND --help": "names the program, not a command",
    r"kedro airflow ": "a plugin that the environment does not hold; its file was made and parsed by hand",
    r"kedro viz ": "starts a server, or builds a site; tests/session reads its lineage",
    r"kedro package": "builds a wheel apart; tests/test_lock.py checks what it takes along",
    r"kedro registry list": "Kedro's own; its time is measured by make bench-startup",
    r"kedro (run|plan) --env <": "a placeholder for a name",
    r"kedro run --env selftest": "asks the embedded model; in the tests of the selftest",
    r"make (run|env|env-sft)$": "makes an environment: what CI does before this test",
    r"make (test|test-slow|lint|lock|docs)$": "what runs this test, rewrites files, or needs another tool",
    r"make test-labelstudio$": "installs Label Studio from the package index",
    r"make bench-": "measures for minutes; results are in docs/benchmarks.md",
}
"""Commands that no test runs, by a pattern, and why."""

OURS = ("run", "plan", "audit", "runs", "reproduce", "compare", "doctor", "gate", "sentinel", "publish")
EXPECTED = {"gate": {2}, "compare": {0, 1}, "sentinel": {0, 1, 3}, "doctor": {0, 3}}
"""Exit codes where 0 is not the only right one: the EXAMPLE rule, other verdicts, a run not asked again."""

_RUN_ID = re.compile(r"RUN|\$RUN|\d{4}-\d{2}-\d{2}T[\d.]+Z")


def shown() -> list[str]:
    """Return every different command line of the documentation, less its comment and what follows it."""
    lines = {" ".join(words_of(line)) for page in PAGES for line in commands_in(page.read_text("utf-8"))}
    return sorted(lines)


def reason_not_to_run(line: str) -> str | None:
    return next((reason for pattern, reason in NOT_RUN.items() if re.match(pattern, line)), None)


def under_test(line: str, run_id: str, number: int) -> list[str]:
    """Return the words of a command with the environment `test`, a real run and files that are there."""
    words = line.split()[1:]
    name, rest = words[0], words[1:]
    out: list[str] = []
    skip = False
    for word in rest:
        if skip:
            skip = False
        elif word in ("--env", "-e", "--old", "--new", "--params", "--review", "--to"):
            skip = True
        elif _RUN_ID.fullmatch(word):
            out.append(run_id)
        elif word.endswith(".csv"):
            out.append("my_pairs.csv")
        elif word == "mine.yml":
            out.append("pairs")
        else:
            out.append(word)
    if name == "compare" and run_id not in out:
        out = [run_id, run_id, *out]
    if name == "sentinel" and run_id not in out:
        out = [run_id, "--frozen", run_id]
    if name == "reproduce" and not out:
        out = [run_id]
    if name == "publish":
        out += ["--to", f"published-{number}"]
    if name != "doctor" or "my_pairs.csv" not in out:
        out += ["--env", "test"]
    return [name, *out]


def commands() -> list[str]:
    return [line for line in shown() if reason_not_to_run(line) is None]


class TestEveryCommandIsAccountedFor:
    def test_each_is_ours_to_run_or_has_a_reason(self) -> None:
        assert [
            line for line in commands() if not (line.startswith("kedro ") and line.split()[1] in OURS)
        ] == []

    def test_each_reason_is_needed(self) -> None:
        used = {pattern for pattern in NOT_RUN for line in shown() if re.match(pattern, line)}
        assert set(NOT_RUN) - used == set()

    def test_every_command_of_ours_is_shown_somewhere(self) -> None:
        assert {line.split()[1] for line in commands()} == set(OURS)


def _all_under_test(tool_project, lines: list[str]) -> dict[str, int]:
    """Run the lines, each different one once; return those with another exit code than they should have."""
    tool_project.write("my_pairs.csv", "question,response_a,response_b\nWhich one?,this,that\n")
    first = tool_project.kedro("run", "--env", "test")
    assert first.exit_code == 0, first.output
    (run_id,) = [path.name for path in tool_project.runs.iterdir()]
    wrong: dict[str, int] = {}
    done = {("run", "--env", "test")}
    for number, line in enumerate(lines):
        words = tuple(under_test(line, run_id, number))
        if words in done or (words[0] == "publish" and any(other[0] == "publish" for other in done)):
            continue
        done.add(words)
        result = tool_project.kedro(*words)
        if result.exit_code not in EXPECTED.get(words[0], {0}):
            wrong[f"{line}  ({' '.join(words)})\n{result.output[-400:]}"] = result.exit_code
    return wrong


def test_every_command_works_under_test(tool_project) -> None:
    assert _all_under_test(tool_project, [line for line in commands() if line.split()[1] != "run"]) == {}


@pytest.mark.slow
def test_every_variant_of_run_works_under_test(tool_project) -> None:
    assert _all_under_test(tool_project, [line for line in commands() if line.split()[1] == "run"]) == {}
