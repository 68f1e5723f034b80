"""``kedro run``: Kedro's command with cheap inputs built first, and errors in words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from kedro.framework.cli.project import run as kedro_run
from kedro.framework.project import pipelines, settings

from judge_calibration.console.exits import Exit, say_error
from judge_calibration.errors import InterruptedRunError, RunError
from judge_calibration.hooks import RunHooks, refuse_parallel_runner
from judge_calibration.session.failures import chain, explain, is_expected
from judge_calibration.session.inputs import with_upstream
from judge_calibration.session.parameters import check_files, check_parameters
from judge_calibration.session.project import check_environment

_FILTERS = ("tags", "node_names", "to_nodes", "from_nodes", "from_inputs", "to_outputs", "namespaces")
_CTRL_C = 130


def _run(**options: Any) -> None:
    """Run with Kedro; a run that does not end well ends with one message."""
    hooks = next(hook for hook in settings.HOOKS if isinstance(hook, RunHooks))
    try:
        if options["pipeline"] and options["pipelines"]:
            raise RunError("Both --pipeline and --pipelines were given.", "give --pipelines only")
        refuse_parallel_runner(str(options["runner"]))
        names = [options["pipeline"]] if options["pipeline"] else list(options["pipelines"] or [])
        options["pipelines"] = _checked(names, options)
        options["pipeline"] = None
        assert kedro_run.callback is not None
        kedro_run.callback(**options)
    except KeyboardInterrupt:
        folder = hooks.interrupt("stopped by Ctrl-C or by the system")
        say_error(_interruption(folder))
        sys.exit(_CTRL_C)
    except click.ClickException:
        raise
    except Exception as error:
        if any(isinstance(cause, InterruptedRunError) for cause in chain(error)):
            click.echo(explain(error), err=True)
            say_error(_interruption(hooks.folder))
            sys.exit(_CTRL_C)
        say_error(explain(error))
        if hooks.folder is not None:
            click.echo(f"  Where: {hooks.failed_at}", err=True)
            click.echo(f"  The manifest of this run: {_shown(hooks.folder / 'manifest.json')}", err=True)
            if not is_expected(error):
                click.echo(f"  The full traceback: {_shown(hooks.folder / 'error.log')}", err=True)
        elif not is_expected(error):
            import traceback

            click.echo("".join(traceback.format_exception(error)), err=True)
        sys.exit(int(Exit.FAIL))
    _say_result(hooks)


def _checked(names: list[str], options: dict[str, Any]) -> list[str]:
    """Check the parameters of the named pipelines, and put before them what is built on demand."""
    from kedro.framework.session import KedroSession

    session = KedroSession.create(
        env=options["env"],
        conf_source=options["conf_source"],
        runtime_params=options["params"],
        save_on_close=False,
    )
    with session:
        context = session.load_context()
        check_environment(Path(context.config_loader.conf_source), context.env)
        check_files(Path(context.config_loader.conf_source), context.env)
        known = dict(pipelines)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise RunError(
                f"There is no pipeline {', '.join(map(repr, unknown))}.",
                f"choose from {', '.join(name for name in known if name != '__default__')}",
            )
        check_parameters(
            context.config_loader["parameters"],
            known,
            Path(context.config_loader.conf_source),
            context.env,
            options["params"],
        )
        if not names or any(options[name] for name in _FILTERS):
            return names
        extended, reasons = with_upstream(names, known, context.catalog, context.env)
    if reasons:
        added = ", ".join(name for name in extended if name not in names)
        click.echo(f"Building {added} first, because nothing has made {', '.join(reasons)} yet.")
    return extended


def _interruption(folder: Path | None) -> str:
    if folder is None:
        return "Interrupted before the run had started; nothing was written."
    return (
        f"Interrupted. The run {folder.name} is recorded as such, and no later run reads its files.\n"
        "  Next: run the same command again; answers that were received are kept and not asked for twice"
    )


def _say_result(hooks: RunHooks) -> None:
    if hooks.folder is None:
        return
    outputs = hooks.outputs
    manifest = _shown(hooks.folder / "manifest.json")
    click.echo(f"Run {hooks.folder.name} finished: {len(outputs)} artifacts, {manifest}")
    if "report" in outputs:
        click.echo(f"The report: {outputs['report']['path']}")


def _shown(path: Path) -> str:
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else str(path)


command = click.Command(
    name="run",
    params=list(kedro_run.params),
    callback=_run,
    help=kedro_run.help,
    context_settings=kedro_run.context_settings,
)
