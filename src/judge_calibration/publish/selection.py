"""What belongs to a publication: a run, the runs whose artifacts it read, and all files that they used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from judge_calibration.errors import Problem, RunError
from judge_calibration.publish.answers import kept_answers, stores_of
from judge_calibration.runs import files, manifest
from judge_calibration.runs.manifest import Run, flattened

Kind = Literal["artifact", "input", "source", "setting", "code"]
"""What a file is.

``artifact``
    What a run wrote, with its checksum file.
``input``
    An authored input of the project that a run read: the pair bank, the attribute inventory.
``source``
    Somebody's file that parameters name: pairs, verdicts, labels, a layout, a prompt.
``setting``
    Configuration, the lock, what it takes to build the environment.
``code``
    The package.
"""

_ROOT_FILES = ("pyproject.toml", "requirements.lock", "Makefile", "LICENSE", ".telemetry")
_LOCAL = ("local", "credentials")
_PEOPLE = "annotation"
_KEY_OF_ROUND = "annotation_secret"
"""The dataset that holds the key of a labelling round."""


@dataclass(frozen=True)
class PublishedFile:
    """One file of a publication.

    Attributes
    ----------
    path : str
        Where it lies, in the project and in the publication, with forward slashes.
    kind : Kind
        What it is.
    dataset : str or None
        The dataset whose file it is.
    place : Path or None
        Where it lies, if not at `path` below the project (a package that is installed elsewhere).
    """

    path: str
    kind: Kind
    dataset: str | None = None
    place: Path | None = None


@dataclass
class Selection:
    """What is published, and what stands against it.

    Attributes
    ----------
    runs : list of Run
        The run itself first, then those whose artifacts it read.
    files : list of PublishedFile
        In the order of their paths.
    given : list of str
        Nodes that nobody else can repeat, because they need a secret or files of people: their outputs are
        taken as they are.
    stores : list of str
        Call stores, relative to the project.
    problems : list of Problem
        Why the files alone would not repeat the run.
    """

    runs: list[Run]
    files: list[PublishedFile] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    stores: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def run(self) -> Run:
        """The run that is published."""
        return self.runs[0]


def select(run_id: str, data: Path, root: Path, package: Path) -> Selection:
    """Choose the runs and files that repeat a run.

    Parameters
    ----------
    run_id : str
        A run that finished.
    data, root, package : pathlib.Path
        The data folder, the project and its package.

    Raises
    ------
    RunError
        There is no such run, or it did not finish.
    """
    runs = _closure(run_id, data / "runs")
    found = Selection(runs)
    chosen: dict[str, PublishedFile] = {}

    def take(path: Path, kind: Kind, dataset: str | None = None) -> None:
        name = files.relative(path, root)
        chosen.setdefault(name, PublishedFile(name, kind, dataset))

    for run in runs:
        for dataset, item in run.content["outputs"].items():
            for path in _members(root / item["path"]):
                take(path, "artifact", dataset)
        for dataset, item in run.content["inputs"].items():
            if "content_sha256" not in item:
                _take_input(dataset, item, root, take, found.problems)
        for path in _named_files(run, root, found.problems):
            take(path, "source")
        for path in _configuration(root, run.content.get("env_option")):
            take(path, "setting")
        stores = list(_stores(run, root, data, found.problems))
        found.stores += [store for store in stores if store not in found.stores]
    for name in _ROOT_FILES:
        if (root / name).is_file():
            take(root / name, "setting")
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
            name = f"src/{path.relative_to(package.parent).as_posix()}"
            chosen.setdefault(name, PublishedFile(name, "code", None, path))
    found.files = [chosen[name] for name in sorted(chosen)]
    found.given = _given(runs[0], root)
    return found


def _closure(run_id: str, folder: Path) -> list[Run]:
    """Return the run and those whose artifacts it read, directly or not."""
    todo, runs = [run_id], {}
    while todo:
        name = todo.pop(0)
        if name in runs:
            continue
        run = manifest.read(folder, name)
        if run.status != "finished":
            raise RunError(
                f"The run {name} did not finish ({run.status}), so it cannot be published.",
                "run it again, then publish the run that finished: kedro runs",
            )
        runs[name] = run
        inputs = run.content["inputs"].values()
        todo += sorted({str(item["version"]) for item in inputs if item.get("version")})
    return list(runs.values())


def _members(path: Path) -> Iterator[Path]:
    """Yield an artifact's files, the CSV beside a table, and their checksum files."""
    for artifact in (path, path.with_suffix(".csv")):
        if artifact == path or artifact.is_file():
            yield from (path.parent / name for name in files.verify(artifact))
            yield files.sidecar_of(artifact)


def _take_input(
    dataset: str, item: Mapping[str, Any], root: Path, take: Any, problems: list[Problem]
) -> None:
    path = root / str(item["path"])
    if not path.is_relative_to(root) or not path.exists():
        problems.append(Problem(f"input {dataset}", str(item["path"]), "a path inside the project"))
        return
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            take(file, "input", dataset)


def _named_files(run: Run, root: Path, problems: list[Problem]) -> Iterator[Path]:
    """Yield the files that parameters name: sources, layouts and prompts of one's own."""
    for name in run.content.get("source_files", {}):
        if path := _inside(str(name), root, problems, "source file"):
            recorded = run.content["source_files"][name]
            if files.sha256_of_file(path) != recorded:
                problems.append(
                    Problem(f"source file {name}", "other bytes than the run read", f"SHA-256 {recorded}")
                )
            yield path
    for key, value in flattened(run.content["parameters"]).items():
        if key == "judging.prompt_files":
            names = [str(entry) for entry in value or ()]
        elif key in ("data_prep.pair_files", "data_prep.log_files", "data_prep.label_files"):
            layouts = [str(entry.get("layout", "")) for entry in value or () if isinstance(entry, Mapping)]
            names = [layout for layout in layouts if layout.endswith((".yml", ".yaml"))]
        elif key in ("data_prep.frozen_split", "annotation.issued_plan") and value:
            names = [str(value)]
        else:
            continue
        for name in names:
            if path := _inside(name, root, problems, key):
                yield path


def _inside(name: str, root: Path, problems: list[Problem], what: str) -> Path | None:
    if "://" in name:
        return None  # it stays where everybody finds it; its checksum is in the manifest
    path = root / name
    if Path(name).is_absolute() or not path.resolve().is_relative_to(root.resolve()):
        wanted = "a relative path inside the project: copy the file into data/01_raw and run again"
        problems.append(Problem(f"{what} {name}", "a file outside the project", wanted))
        return None
    if not path.is_file():
        problems.append(Problem(f"{what} {name}", "no such file", "the file that the run read"))
        return None
    return path


def _configuration(root: Path, env: str | None) -> Iterator[Path]:
    conf = root / "conf"
    folders = ["base"] + ([env] if env and env not in _LOCAL else [])
    for path in sorted(conf.glob("*")):
        if path.is_file():
            yield path
    for folder in folders:
        for path in sorted((conf / folder).rglob("*")):
            if path.is_file():
                yield path
    keep = conf / "local" / ".gitkeep"
    if keep.is_file():
        yield keep


def _stores(run: Run, root: Path, data: Path, problems: list[Problem]) -> Iterator[str]:
    for path in stores_of(run, root, data):
        if not path.resolve().is_relative_to(root.resolve()):
            problems.append(Problem("parameter asking.store", str(path), "a call store inside the project"))
        elif path.is_dir():
            yield files.relative(path, root)
    kept = kept_answers(run, root, data)
    if kept.lacking:
        found = f"a store that lacks {kept.lacking} of the {kept.had} answers"
        problems.append(Problem(f"run {run.run_id}", found, "the call store of the run"))


def _given(run: Run, root: Path) -> list[str]:
    """Return the nodes of the labelling round, and those that read its key, where others cannot repeat them.

    That is where ids were keyed with a secret, or labels came in.
    """
    import pandas as pd

    keyed = [node["name"] for node in run.content["nodes"] if _KEY_OF_ROUND in node["inputs"]]
    of_round = [node["name"] for node in run.content["nodes"] if f".{_PEOPLE}." in f".{node['module']}."]
    nodes = list(dict.fromkeys([*of_round, *keyed]))
    parameters = run.content["parameters"]
    labels = (parameters.get("annotation") or {}).get("labels") or {}
    if labels.get("files") or labels.get("identities"):
        return nodes
    plan = run.content["outputs"].get("annotation_plan")
    if plan is None:
        # Without a plan it is not known whether the pseudonyms of imported labels were keyed with a secret.
        return keyed if (parameters.get("data_prep") or {}).get("label_files") else []
    kinds = pd.read_parquet(root / plan["path"], columns=["key_kind"])["key_kind"]
    return nodes if (kinds == "secret").any() else []
