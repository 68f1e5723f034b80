"""Agreement with lme4 on simulated designs: balanced, on the boundary, binary, unbalanced."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from judge_calibration.metrics.reml_balanced import fit_balanced, strata_of
from judge_calibration.metrics.reml_general import cell_table, fit_general

ORACLES = Path(__file__).resolve().parents[1] / "oracles"
_spec = importlib.util.spec_from_file_location("oracle_designs", ORACLES / "designs.py")
designs = importlib.util.module_from_spec(_spec)
import sys  # noqa: E402

sys.modules["oracle_designs"] = designs
_spec.loader.exec_module(designs)

FROZEN = json.loads((ORACLES / "lme4.json").read_text())
CASES = [(design, model) for design in designs.DESIGNS for model in design.models]


def _table(frame, design):
    return cell_table(
        [frame[f].to_numpy() for f in designs.FACETS], design.levels, frame["y"].to_numpy(), designs.FACETS
    )


def _assert_agrees(fit, frozen):
    for name, value in frozen["components"].items():
        assert fit.components[name] == pytest.approx(value, rel=1e-4, abs=1e-6), name
    assert fit.criterion <= frozen["criterion"] + 1e-8 * abs(frozen["criterion"])


@pytest.mark.parametrize(("design", "model"), CASES, ids=lambda v: v if isinstance(v, str) else v.name)
def test_general_solver_agrees_with_lme4(design, model):
    frozen = FROZEN[f"{design.name}/{model}"]
    frame = designs.simulate(design)
    assert designs.fingerprint(frame) == frozen["data_sha256"]
    _assert_agrees(fit_general(_table(frame, design), *designs.model_of(model)), frozen)


@pytest.mark.parametrize(
    ("design", "model"),
    [case for case in CASES if not case[0].lost],
    ids=lambda v: v if isinstance(v, str) else v.name,
)
def test_exact_strata_agree_with_lme4(design, model):
    table = _table(designs.simulate(design), design)
    strata = strata_of(table.means, designs.FACETS, design.repetitions, table.within_squares)
    fit = fit_balanced(strata, *designs.model_of(model))
    _assert_agrees(fit, FROZEN[f"{design.name}/{model}"])
    assert all(slope >= -1e-4 for slope in fit.gradient.values())
    inside = [slope for name, slope in fit.gradient.items() if name not in fit.boundary]
    scale = max(abs(np.asarray(list(fit.components.values()))))
    assert max(map(abs, inside)) * scale < 1e-2


def test_boundary_design_is_on_the_boundary():
    table = _table(designs.simulate(designs.DESIGNS[1]), designs.DESIGNS[1])
    assert fit_general(table, *designs.model_of("main")).boundary
