"""The whole report, from result tables: the answer first, then what it rests on, then what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.report import sections
from judge_calibration.report.adaptation_section import adaptation_section
from judge_calibration.report.answers import Answer
from judge_calibration.report.attribute_section import attributes_section
from judge_calibration.report.audit_section import audit_section
from judge_calibration.report.authority_section import authority_section, earned_sentence
from judge_calibration.report.blocks import Missing, Section, marked
from judge_calibration.report.costs_section import costs_section, outcomes_section
from judge_calibration.report.data_section import data_section
from judge_calibration.report.formats_section import (
    comparisons_section,
    formats_section,
    paradigms_section,
    temperature_section,
)
from judge_calibration.report.glossary import definitions_section
from judge_calibration.report.labelling_section import labelling_section
from judge_calibration.report.manipulation_section import manipulations_section, twins_section
from judge_calibration.report.page import render_page
from judge_calibration.report.people_section import people_section
from judge_calibration.report.position_section import positions_section
from judge_calibration.report.remedies_section import (
    confidence_section,
    remedies_section,
    selective_section,
)
from judge_calibration.report.result_tables import has_simulated_labels, some
from judge_calibration.report.variance_section import variance_section
from judge_calibration.report.wording import count_noun

MOST_ANSWERS = 12


def build_report(
    tables: Mapping[str, pd.DataFrame], instruments: Mapping[str, Any], options: ReportingOptions
) -> str:
    """Return the report page.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        Result tables under their dataset names. ``trust_table``, ``outcome_table``, ``pairs`` and
        ``judged_pairs`` have to be there; a section whose table is absent or empty says what would bring it.
    instruments : mapping
        instrument_id to everything that identifies it; empty for verdicts from logs.
    options : ReportingOptions
    """
    trust = tables["trust_table"]
    answers = _answers(tables, options)
    judges = simulated_judges(instruments)
    people = has_simulated_labels(tables)
    of_judges = [
        authority_section(tables),
        sections.trust_section(trust, options.regions),
        positions_section(tables),
        manipulations_section(tables),
        twins_section(tables),
        sections.slices_section(trust),
        comparisons_section(tables),
        formats_section(tables),
        paradigms_section(tables),
        temperature_section(tables),
        confidence_section(tables),
        selective_section(tables),
        remedies_section(tables),
        variance_section(tables),
        outcomes_section(tables),
        costs_section(tables),
        audit_section(tables),
    ]
    parts = [marked(section, judges) for section in of_judges]
    parts[2:2] = [
        marked(people_section(tables), judges or people),
        marked(labelling_section(tables), people),
    ]
    parts += [
        marked(attributes_section(tables), judges),
        marked(adaptation_section(tables), judges or people),
        data_section(tables),
        marked(_self_test(tables), True),
        sections.instrument_section(instruments),
        sections.limits_section(sections.LIMITS),
        definitions_section(),
    ]
    title = "How far can this judge be trusted?"
    if len(answers) > MOST_ANSWERS:
        more = (
            f"These are the {MOST_ANSWERS} most trustworthy of {len(answers)} cells (judge, protocol, "
            "temperature and source); the table below has all of them."
        )
        parts.insert(0, Section("all-cells", "More cells", more, []))
    return render_page(
        title, _summary(tables, trust), answers[:MOST_ANSWERS], parts, _banners(options, judges, people)
    )


def simulated_judges(instruments: Mapping[str, Any]) -> bool:
    """Return whether a judge among the instruments is a script that stands for a model.

    Examples
    --------
    >>> simulated_judges({"i": {"identity": {"provider": "scripted"}}})
    True
    """
    return any(
        content.get("identity", content).get("provider") == "scripted" for content in instruments.values()
    )


def _answers(tables: Mapping[str, pd.DataFrame], options: ReportingOptions) -> list[Answer]:
    """Return the answers in words, each with what the judge has earned."""
    trust = tables["trust_table"]
    found = sections.answers(trust, tables["outcome_table"], options.regions)
    authority = tables.get("authority")
    rows = sections.whole_rows(trust)
    earned = {
        label: earned_sentence(authority, row)
        for row, label in zip(rows.to_dict("records"), sections.cell_labels(rows), strict=True)
    }
    return [
        replace(answer, details=(*answer.details, earned[answer.name])) if earned.get(answer.name) else answer
        for answer in found
    ]


def _summary(tables: Mapping[str, pd.DataFrame], trust: pd.DataFrame) -> str:
    cells = len(sections.whole_rows(trust))
    pairs, judged = tables["pairs"], tables["judged_pairs"]
    shown = f"{count_noun(cells, 'cell')} (a judge with one prompt at one temperature)"
    if judged.empty:
        logged = count_noun(len(pairs), "pair")
        return f"{shown}, from logs over {logged}. Nothing was asked of a model in this run."
    lengths = [_median_words(frame) for frame in (judged, pairs)]
    return (
        f"{shown} on {count_noun(len(judged), 'pair')} of {count_noun(len(pairs), 'pair')}, drawn by hash "
        "and spread over manipulations, domains and difficulties. Median answer: "
        f"{lengths[0]:,.0f} words among the drawn, {lengths[1]:,.0f} among all."
    )


def _median_words(pairs: pd.DataFrame) -> float:
    texts = pd.concat([pairs["response_a"], pairs["response_b"]]).dropna()
    return float(texts.map(lambda text: len(str(text).split())).median())


def _banners(options: ReportingOptions, judges: bool, people: bool) -> list[str]:
    who = " and ".join(name for name, simulated in (("judges", judges), ("labels", people)) if simulated)
    declared = list(options.banners)
    if who:
        declared.insert(0, f"SIMULATED: {who} on this page were made by a program to show how it looks.")
    return declared


def _self_test(tables: Mapping[str, pd.DataFrame]) -> Section:
    lead = (
        "The instrument tested on planted judges whose numbers are known (SIMULATED): coverage, false "
        "alarms, power."
    )
    missing = Missing("It was not run here:", "kedro run --env selftest --nodes check_instrument")
    frame = some(tables, "selftest_table")
    return sections.table_section("selftest", "Self-test of the instrument", lead, frame, "", missing)
