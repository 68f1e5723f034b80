"""Run the project as ``python -m judge_calibration``, with the options of ``kedro run``."""

import sys

from kedro.framework.project import configure_project
from kedro.framework.startup import bootstrap_project
from kedro.utils import find_kedro_project


def main() -> None:
    """Run the pipelines named on the command line."""
    from pathlib import Path

    from judge_calibration.console.run import command

    project = find_kedro_project(Path.cwd())
    if project is not None:
        bootstrap_project(project)
    else:
        configure_project("judge_calibration")
    command(args=sys.argv[1:], prog_name="judge_calibration")


if __name__ == "__main__":
    main()
