"""What a person looked at and declared: findings that are no personal data, licences that a file did not say.

The file is kept in the publication, so that readers see what was waved through, by whom and why. Nothing of
a private sentinel can be waved through.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.options.base import Options


class ReviewedFinding(Options):
    """One finding of a detector that a person accepts."""

    id: str = Field(pattern="^[0-9a-f]{12}$", description="as the refusal names it")
    reason: str = Field(min_length=5, description="why others may read this")


class ReviewedLicence(Options):
    """The licence of a file, or of `pairs of SOURCE`, that was not declared otherwise."""

    path: str
    licence: str
    reason: str = Field(min_length=5, description="how it is known")

    @field_validator("licence")
    @classmethod
    def _is_known(cls, value: str) -> str:
        from judge_calibration.publish.licences import known_licence

        found = known_licence(value)
        if found is None:
            raise ValueError(
                f"{value!r} is no SPDX licence (CC-BY-4.0, MIT, ...); for terms of your own write "
                "LicenseRef-NAME and describe them in the reason"
            )
        return found


class Review(Options):
    """The declarations of whoever looked at the publication."""

    reviewed_by: str = Field(default="", description="a name or a role that may be published")
    findings: tuple[ReviewedFinding, ...] = ()
    licences: tuple[ReviewedLicence, ...] = ()


def read_review(path: Path | None) -> Review:
    """Return the declarations of a YAML file; none where no file is given.

    Raises
    ------
    OptionsError
        With every fault of the file.
    """
    if path is None:
        return Review()
    import yaml
    from pydantic import ValidationError

    from judge_calibration.options.faults import problems_of

    wanted = "a YAML mapping with reviewed_by, findings and licences"
    next_step = f"correct {path.name}; docs/publishing.md shows one"
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        found = str(error).replace("\n", " ")[:200]
        raise OptionsError(f"{path} is not YAML.", [Problem(path.name, found, wanted)], next_step) from error
    if not isinstance(content, dict):
        found = type(content).__name__
        raise OptionsError(f"{path} is no review.", [Problem(path.name, found, wanted)], next_step)
    try:
        review = Review.model_validate(content)
    except ValidationError as error:
        raise OptionsError(
            f"{path} is not as a review has to be.", problems_of(error, Review, path.name), next_step
        ) from error
    if (review.findings or review.licences) and not review.reviewed_by:
        problem = Problem(f"{path.name}, reviewed_by", "nothing", "who looked at these, in words to publish")
        raise OptionsError(f"{path} does not say who reviewed.", [problem], next_step)
    return review


def proposed_review(findings: list[Any], licences: list[Problem]) -> str:
    """Return a review with everything that was found, its reasons left to a person."""
    lines = ["# Fill in every reason (5 characters or more); take out what shall not be published.", ""]
    lines += ["reviewed_by: ''", "findings:" if findings else "findings: []"]
    for finding in findings:
        lines += [f"  # {finding.where}: {finding.kind}: {finding.shown}".replace("\n", " ")]
        lines += [f"  - {{id: {finding.id}, reason: ''}}"]
    lines += ["licences:" if licences else "licences: []"]
    for problem in licences:
        lines += [f"  - {{path: '{problem.where}', licence: '', reason: ''}}"]
    return "\n".join(lines) + "\n"
