"""What `kedro gate` and `kedro sentinel` compare: the products, the judge, and the runs they rest on.

What has to be true is not said here but in the decision rule, ``reporting.rule``.
"""

from __future__ import annotations

from pydantic import Field

from judge_calibration.options.base import Options


class CellChoice(Options):
    """Which judge decides; what is null is not asked for, and one cell has to be left."""

    judge_id: str | None = None
    protocol: str | None = None
    constraint: str | None = None
    temperature: float | None = Field(default=None, ge=0)


class GateOptions(Options):
    """Parameters of the commands `gate` and `sentinel`.

    Attributes
    ----------
    old, new : str
        The products' names, as ``candidate_a`` and ``candidate_b`` of the pairs have them.
    judge : CellChoice
        The judge, protocol, constraint and temperature that decide.
    calibration_environment, calibration_run : str
        Where the judge was calibrated: the newest run of an environment, or one that is named. Its verdicts
        on the sentinel pairs are the frozen ones.
    sentinel_environment, sentinel_run : str
        Where the sentinel pairs were judged again.
    """

    old: str = "old"
    new: str = "new"
    judge: CellChoice = CellChoice()
    calibration_environment: str = "base"
    calibration_run: str | None = None
    sentinel_environment: str = "sentinel"
    sentinel_run: str | None = None
