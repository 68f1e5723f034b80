"""The project's commands, which ``kedro`` lists beside its own.

They are found by the entry point ``kedro.project_commands``. (A module ``cli.py`` would be found too, but
``python -m judge_calibration`` does not survive one.) Each is a module of ``console`` with a click command
``command``, loaded when it is called: a new one needs a module there and a line here.
"""

from kedro.framework.cli.utils import LazyGroup

_CONSOLE = "judge_calibration.console"

commands = LazyGroup(
    name="kedro",
    lazy_subcommands={
        # `run` is Kedro's own with the same options; here it explains its errors and builds cheap inputs.
        "run": f"{_CONSOLE}.run.command",
        "audit": f"{_CONSOLE}.audit.command",
        "runs": f"{_CONSOLE}.runs.command",
        "reproduce": f"{_CONSOLE}.reproduce.command",
        "plan": f"{_CONSOLE}.plan.command",
        "gate": f"{_CONSOLE}.gate.command",
        "sentinel": f"{_CONSOLE}.sentinel.command",
        "compare": f"{_CONSOLE}.compare.command",
        "doctor": f"{_CONSOLE}.doctor.command",
        "publish": f"{_CONSOLE}.publish.command",
    },
)
