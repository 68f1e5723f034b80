"""The project's settings, as Kedro reads them.

https://docs.kedro.org/en/stable/configure/project_settings/
"""

from judge_calibration.hooks import RunHooks, SimulationHooks

HOOKS = (RunHooks(), SimulationHooks())

# An environment changes only what it names: without "soft" it would replace every block that it touches.
CONFIG_LOADER_ARGS = {
    "base_env": "base",
    "default_run_env": "local",
    "merge_strategy": {"parameters": "soft"},
}
