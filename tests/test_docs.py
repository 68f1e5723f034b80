"""The documentation against the project: links, commands, parameters and names that it mentions exist.

Nothing that a page shows is run here; commands are parsed and parameters are validated.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
import yaml
from pydantic import BaseModel, ValidationError

from judge_calibration.commands import commands
from judge_calibration.metrics.trust_statistics import METRICS
from judge_calibration.options.adaptation import AdaptationOptions
from judge_calibration.options.annotation import AnnotationOptions
from judge_calibration.options.attributes import AttributesOptions
from judge_calibration.options.data_prep import DataPrepOptions
from judge_calibration.options.gate import GateOptions
from judge_calibration.options.judging import JudgeSpec, JudgingOptions
from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.pipeline_registry import NAMES, register_pipelines

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), ROOT / "conf/README.md", ROOT / "data/README.md", *(ROOT / "docs").rglob("*.md")]
)
BLOCKS: dict[str, type[BaseModel]] = {
    "data_prep": DataPrepOptions,
    "annotation": AnnotationOptions,
    "judging": JudgingOptions,
    "attributes": AttributesOptions,
    "adaptation": AdaptationOptions,
    "reporting": ReportingOptions,
    "gate": GateOptions,
}

PLUGINS = {"airflow"}
"""Commands of plugins that the environment does not hold."""

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*)[^\n]*\n(?P<body>.*?)^ *```[ ]*$", re.M | re.S)
_INLINE = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
_COMMAND = re.compile(r"(?:^|[;&|] *|run: *|Then: *)\$? *(?:\.venv/bin/)?((?:kedro|make)(?: .*)?)$")
_PLACEHOLDER = re.compile(r"[A-Z]+|<.*>|\$\w+")


class Fence(NamedTuple):
    """One fenced block of a page."""

    language: str
    body: str


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def fences(text: str) -> Iterator[Fence]:
    """Yield the fenced blocks, without the indentation of the list that they stand in."""
    for match in _FENCE.finditer(text):
        indent = len(match["indent"])
        lines = [line[indent:] if not line[:indent].strip() else line for line in match["body"].splitlines()]
        yield Fence(match["language"], "\n".join(lines) + "\n")


def prose(text: str) -> str:
    """Return the page without its fenced blocks."""
    return _FENCE.sub("", text)


def commands_in(text: str) -> Iterator[str]:
    """Yield every `kedro` and `make` command line of a page."""
    for fence in fences(text):
        if fence.language == "python":
            continue
        for line in re.sub(r"\\\n\s*", "", fence.body).splitlines():
            if match := _COMMAND.search(line.strip()):
                yield match[1]
    for span in _INLINE.findall(prose(text)):
        if re.match(r"(\.venv/bin/)?(kedro|make)( |$)", span):
            yield " ".join(span.split()).removeprefix(".venv/bin/")


def words_of(line: str) -> list[str]:
    """Split a command line as a shell does, up to whatever follows the command."""
    words = shlex.split(line, comments=True)
    ends = [k for k, word in enumerate(words) if word in {"||", "&&", "|", ">"} or word.endswith(";")]
    return words[: ends[0]] if ends else words


@cache
def kedro_groups() -> tuple[click.Group, ...]:
    from kedro.framework.cli.catalog import catalog_cli
    from kedro.framework.cli.project import project_group
    from kedro.framework.cli.registry import registry_cli

    found = [commands, project_group, catalog_cli, registry_cli]
    for group in ("kedro.project_commands", "kedro.global_commands"):
        for entry in importlib.metadata.entry_points(group=group):
            if entry.name != "judge_calibration":
                found.append(entry.load())
    return tuple(found)


def kedro_command(words: list[str]) -> tuple[click.Command, list[str]] | None:
    """Return the command that the words name, and what is left of them."""
    for group in kedro_groups():
        command: click.Command | None = group
        rest = words
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            command = command.get_command(click.Context(command), rest[0])
            rest = rest[1:]
        if command is not None and not isinstance(command, click.Group):
            return command, rest
    return None


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.M))


def environments(text: str) -> set[str]:
    """Return the environments that there are, and those whose parameter files the page itself shows."""
    there = {path.name for path in (ROOT / "conf").iterdir() if path.is_dir()}
    return there | set(re.findall(r"conf/(\w+)/\w+/parameters\.yml", text))


def as_list(value: Any) -> list[str]:
    values = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
    return [part for item in values for part in str(item).split(",") if part]


@cache
def node_names() -> frozenset[str]:
    return frozenset(node.name for pipeline in register_pipelines().values() for node in pipeline.nodes)


def problems_of_command(line: str, text: str) -> list[str]:
    """Say what a command line names that there is not."""
    program, *words = words_of(line)
    if program == "make":
        targets = [word for word in words if "=" not in word and not word.startswith("-")]
        return [f"make has no target {target}" for target in targets if target not in make_targets()]
    if not words or _PLACEHOLDER.fullmatch(words[0]) or words[0] in PLUGINS:
        return []
    found = kedro_command(words)
    if found is None:
        return [f"there is no command kedro {words[0]}"]
    command, rest = found
    context = click.Context(command, info_name=command.name)
    try:
        values, left, _ = command.make_parser(context).parse_args(list(rest))
    except click.UsageError as error:
        return [error.format_message()]
    problems = [f"superfluous: {' '.join(left)}"] if left else []
    known = {
        "env": environments(text),
        "pipeline": {*NAMES, "__default__"},
        "pipelines": {*NAMES, "__default__"},
        "nodes": node_names() if "--nodes" in rest else frozenset(),
        "node_names": node_names() if "--nodes" in rest else frozenset(),
    }
    for option, names in known.items():
        problems += [
            f"{option}: there is no {value}"
            for value in as_list(values.get(option))
            if value not in names and not _PLACEHOLDER.fullmatch(value)
        ]
    for setting in as_list(values.get("params")):
        key, _, value = setting.partition("=")
        problems += problems_of_parameters(nested(key, yaml.safe_load(value)))
    return problems


def nested(key: str, value: Any) -> dict[str, Any]:
    for part in reversed(key.split(".")):
        value = {part: value}
    return value


@cache
def base_parameters() -> dict[str, Any]:
    """Return the parameters of conf/base, whatever conf/local says."""
    from kedro.config import OmegaConfigLoader

    loader = OmegaConfigLoader(str(ROOT / "conf"), base_env="base", default_run_env="base")
    return dict(loader["parameters"])


def merged(base: Any, over: Any) -> Any:
    """Merge as environments are merged: mappings key by key, all else replaced."""
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        return {**base, **{key: merged(base.get(key), value) for key, value in over.items()}}
    return over


def problems_of_parameters(blocks: Mapping[str, Any]) -> list[str]:
    """Say what the models of the pipelines refuse in these parameters, laid over conf/base."""
    problems = []
    for name, block in blocks.items():
        if name not in BLOCKS:
            problems.append(f"{name} is no block of parameters; there are {', '.join(BLOCKS)}")
            continue
        try:
            BLOCKS[name].model_validate(merged(base_parameters().get(name, {}), block))
        except ValidationError as error:
            problems += [
                f"{name}.{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
                for fault in error.errors(include_url=False)
            ]
    return problems


def as_parameters(content: Any) -> dict[str, Any] | None:
    """Return a snippet as blocks of parameters; None if it is something else, such as a prompt or a task."""
    if not isinstance(content, dict) or not content:
        return None
    keys = set(content)
    if keys & set(BLOCKS):
        return content
    if keys <= set(AnnotationOptions.model_fields):
        return {"annotation": content}
    if keys <= set(JudgeSpec.model_fields):
        first = base_parameters()["judging"]["judges"][0]
        return {"judging": {"judges": [merged(first, content)]}}
    return None


def snippets_in(text: str) -> Iterator[Any]:
    """Yield the YAML of a page: its fenced blocks, and parameters within a sentence."""
    for fence in fences(text):
        if fence.language in {"yaml", "yml"}:
            yield yaml.safe_load(fence.body)
    for span in _INLINE.findall(prose(text)):
        if match := re.fullmatch(r"(asking\.\w+|\w+): (\{.*\})", " ".join(span.split())):
            key, value = match[1], yaml.safe_load(match[2])
            if key in BLOCKS:
                yield {key: value}
            elif key.startswith("asking."):
                yield {"judging": nested(key, value)}


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


class TestLinks:
    @each_page
    def test_every_relative_link_leads_to_a_file(self, page: Path) -> None:
        text = re.sub(r"`[^`\n]*`", "", prose(page.read_text("utf-8")))
        targets = re.findall(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)", text)
        relative = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]
        assert [target for target in relative if not (page.parent / target).exists()] == []

    def test_every_page_but_the_layouts_is_in_the_navigation(self) -> None:
        nav = (ROOT / "mkdocs.yml").read_text("utf-8")
        folder = ROOT / "docs"
        pages = [page.relative_to(folder).as_posix() for page in PAGES if folder in page.parents]
        wanted = [page for page in pages if not page.startswith("sources/") or page == "sources/index.md"]
        assert [page for page in wanted if f": {page}" not in nav] == []

    def test_the_site_builds_strictly(self, tmp_path: Path) -> None:
        if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
            pytest.skip("mkdocs is not installed (extra docs)")
        done = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
            cwd=ROOT,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "index.html").is_file()


class TestCommands:
    @each_page
    def test_commands_options_environments_and_pipelines_exist(self, page: Path) -> None:
        text = page.read_text("utf-8")
        found = {line: problems_of_command(line, text) for line in commands_in(text)}
        assert {line: problems for line, problems in found.items() if problems} == {}

    def test_commands_are_found_at_all(self) -> None:
        lines = [line for page in PAGES for line in commands_in(page.read_text("utf-8"))]
        assert "make run" in {" ".join(words_of(line)) for line in lines}
        assert sum(line.startswith("kedro run") for line in lines) > 10

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("kedro fly", "no command"),
            ("kedro run --environment test", "No such option"),
            ("kedro run --env nowhere", "there is no nowhere"),
            ("kedro run --pipelines judging,judgng", "there is no judgng"),
            ("kedro run --nodes no_such_node", "there is no no_such_node"),
            ("kedro run --params judging.asking.stor=x", "Extra inputs"),
            ("kedro audit ONE TWO", "superfluous"),
            ("make tea", "no target tea"),
        ],
    )
    def test_a_wrong_command_is_noticed(self, line: str, problem: str) -> None:
        assert any(problem in found for found in problems_of_command(line, ""))

    def test_an_environment_that_the_page_makes_counts(self) -> None:
        assert problems_of_command("kedro run --env mine", "# conf/mine/judging/parameters.yml") == []


class TestParameters:
    @each_page
    def test_parameters_are_accepted(self, page: Path) -> None:
        shown = [as_parameters(content) for content in snippets_in(page.read_text("utf-8"))]
        assert [problem for blocks in shown if blocks for problem in problems_of_parameters(blocks)] == []

    def test_snippets_are_found_at_all(self) -> None:
        shown = [as_parameters(content) for page in PAGES for content in snippets_in(page.read_text("utf-8"))]
        assert {name for blocks in shown if blocks for name in blocks} >= {
            "data_prep",
            "judging",
            "annotation",
        }

    def test_a_wrong_parameter_is_noticed(self) -> None:
        text = "```yaml\ndata_prep:\n  judged: {sise: 3}\n```\n"
        (content,) = snippets_in(text)
        assert problems_of_parameters(as_parameters(content) or {}) == [
            "data_prep.judged.sise: Extra inputs are not permitted"
        ]


class TestNames:
    def test_every_environment_is_described(self) -> None:
        text = (ROOT / "docs" / "environments.md").read_text("utf-8")
        there = {path.name for path in (ROOT / "conf").iterdir() if path.is_dir() and any(path.iterdir())}
        described = set(re.findall(r"^\| `([\w-]+)` \|", text, re.M))
        assert described - {"local"} == there - {"local"}

    def test_every_statistic_of_the_trust_table_is_defined_once(self) -> None:
        text = (ROOT / "docs" / "definitions.md").read_text("utf-8")
        table = text.partition("## The trust table")[2].partition("\n## ")[0]
        assert re.findall(r"^\| `(\w+)` \|", table, re.M) == list(METRICS)

    def test_threats_name_sections_that_the_report_has(self) -> None:
        text = (ROOT / "docs" / "threats.md").read_text("utf-8")
        rows = [row.split(" | ") for row in re.findall(r"^\| \*\*.*$", text, re.M)]
        named = {part.strip(" |") for row in rows for part in row[3].split(";")} - {"the gate's page"}
        modules = (ROOT / "src" / "judge_calibration" / "report").glob("*.py")
        code = "".join(module.read_text("utf-8") for module in modules)
        titles = set(re.findall(r"[sS]ection\(\s*\"[a-z-]+\",\s*\"([^\"]+)\"", code))
        assert len(rows) > 12
        assert named <= titles
