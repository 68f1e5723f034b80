"""The examples of the documentation: every outcome and every reason to pause, each with its page."""

import importlib.util
import re

import pytest


@pytest.fixture(scope="module")
def examples(project_path):
    path = project_path / "scripts" / "gate_examples.py"
    spec = importlib.util.spec_from_file_location("gate_examples", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.examples()


@pytest.mark.parametrize(
    ("name", "outcome", "code", "reason"),
    [
        ("pass", "pass", 0, ""),
        ("fail", "fail", 1, "judge_against"),
        ("inconclusive", "inconclusive", 3, "judge_unsettled"),
        ("conflict", "conflict", 3, "judge_for_humans_against"),
        ("too_few", "inconclusive", 3, "(too_few)"),
        ("not_calibrated", "inconclusive", 3, "not_calibrated"),
        ("drifted", "inconclusive", 3, "drifted"),
        ("high_stakes", "inconclusive", 3, "high_stakes"),
    ],
)
def test_gate(examples, name, outcome, code, reason):
    page, document = examples[name]
    assert (document["outcome"], document["exit_code"]) == (outcome, code)
    assert reason in "; ".join(document["reasons"])
    assert page.count('class="simulated"') >= page.count("<caption>") >= 2
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [("sentinel_stable", "stable", 0), ("sentinel_drift", "drift", 1), ("sentinel_too_few", "too_few", 3)],
)
def test_sentinel(examples, name, status, code):
    page, document = examples[name]
    assert (document["status"], document["exit_code"]) == (status, code)
    assert "SIMULATED" in page


def test_reasons_and_tables_say_the_same_of_the_sentinel(examples):
    for name, (page, document) in examples.items():
        if "reasons" not in document:
            continue
        without = document["sentinel"]["status"] is None
        assert ("sentinel_not_run" in document["reasons"]) == without, name
        assert ("Ask anew:" in page) == without, name
        assert ("measures" in document["sentinel"]) != without, name


def test_links_lead_to_places_on_the_page(examples):
    for name, (page, _) in examples.items():
        inside = set(re.findall(r'href="#([^"]+)"', page))
        assert inside <= set(re.findall(r'\bid="([^"]+)"', page)), name


def test_the_documentation_names_each(examples, project_path):
    text = (project_path / "docs" / "gates.md").read_text("utf-8")
    assert all(f"`{name}`" in text for name in examples)
