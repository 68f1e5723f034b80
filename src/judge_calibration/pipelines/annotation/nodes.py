"""Nodes of the pipeline `annotation`."""

from __future__ import annotations

import logging

import pandas as pd

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.labelling.adjudication import measure_progress, queue_disagreements, settle_labels
from judge_calibration.labelling.agreement_of_people import human_agreement as agreement_of_people
from judge_calibration.labelling.agreement_of_people import human_confusion, item_agreement
from judge_calibration.labelling.annotators import annotator_drift, annotator_table
from judge_calibration.labelling.handing_out import round_files
from judge_calibration.labelling.identity import RoundKey
from judge_calibration.labelling.importing import (
    check_rows,
    describe_label_files,
    given_packets,
    join_imported,
    read_label_files,
)
from judge_calibration.labelling.packets import SIMULATED, make_packets, primary_packets
from judge_calibration.labelling.planning import labelling_frame, plan_round, read_issued_plan
from judge_calibration.labelling.reference_labels import (
    expected_relationship,
    fit_annotator_errors,
    human_ceiling,
)
from judge_calibration.labelling.simulation import simulate_rows
from judge_calibration.labelling.study import (
    ask_attributes,
    asked_answers,
    read_cases,
    select_cases,
    study_results,
)
from judge_calibration.options.annotation import AnnotationOptions

logger = logging.getLogger(__name__)


def _key(secret: str, options: AnnotationOptions) -> RoundKey:
    return RoundKey(secret or None, options.round_id)


def _marked(frame: pd.DataFrame, options: AnnotationOptions) -> pd.DataFrame:
    """Return the table; of a simulated panel, with the word in a column, so that no copy loses it."""
    if not options.simulation.enabled:
        return frame
    return frame.assign(mark=pd.Series(SIMULATED, index=frame.index, dtype="str"))


def read_labels_given(options: AnnotationOptions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the declared label files (the rows stay in memory), and say which files they were."""
    rows = read_label_files(options.labels, options.codes)
    return rows, _marked(describe_label_files(options.labels, rows), options)


def choose_study_cases(
    pairs: pd.DataFrame, logged_verdicts: pd.DataFrame, options: AnnotationOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Choose the cases of a human attribute study, and what is asked of each; empty if there is no study."""
    study = options.study
    if study.enabled and study.cases_file is not None:
        cases = read_cases(study.cases_file, pairs)
    else:
        verdicts = logged_verdicts if study.enabled else logged_verdicts.head(0)
        cases = select_cases(verdicts, pairs, study, options.draw.seed)
    if options.study.enabled and cases.empty:
        logger.warning(
            "No pair qualifies as a case of the attribute study: the logged verdicts do not split."
        )
    return _marked(cases, options), ask_attributes(list(cases["pair_id"]), options.study)


def plan_labelling(
    pairs: pd.DataFrame,
    declared_rows: pd.DataFrame,
    study_cases: pd.DataFrame,
    secret: str,
    options: AnnotationOptions,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Plan the round: who labels what, the key that un-blinds, and what each critical slice gets."""
    key = _key(secret, options)
    issued = read_issued_plan(options.issued_plan) if options.issued_plan else None
    given = given_packets(declared_rows, key)
    plan, unblinding, design = plan_round(pairs, options, key, given, study_cases, issued)
    if key.kind == "practice" and not options.simulation.enabled:
        logger.warning(
            "No secret is set: packet ids and pseudonyms come from a published practice key. Before people "
            "label, set JUDGE_CALIBRATION_ANNOTATION_SECRET."
        )
    unassigned = int((plan["status"] == "unassigned").sum())
    if unassigned:
        logger.warning("%d slots have no competent annotator with room; see annotation_plan.", unassigned)
    return _marked(plan, options), _marked(unblinding, options), _marked(design, options)


def frame_labelling(
    pairs: pd.DataFrame, annotation_plan: pd.DataFrame, options: AnnotationOptions
) -> pd.DataFrame:
    """Return every pair that could be drawn, with its chance."""
    return _marked(labelling_frame(pairs, annotation_plan, options), options)


def blind_packets(
    pairs: pd.DataFrame,
    unblinding_key: pd.DataFrame,
    study_questions: pd.DataFrame,
    options: AnnotationOptions,
) -> pd.DataFrame:
    """Return what the primary annotators see."""
    return primary_packets(pairs, unblinding_key, options.simulation.enabled, study_questions)


def gather_rows(
    declared_rows: pd.DataFrame,
    pairs: pd.DataFrame,
    unblinding_key: pd.DataFrame,
    study_questions: pd.DataFrame,
    secret: str,
    options: AnnotationOptions,
) -> pd.DataFrame:
    """Return the label rows of the files and, in the demonstration, those of the simulated panel."""
    if not options.simulation.enabled:
        return declared_rows
    simulated = simulate_rows(pairs, unblinding_key, options, _key(secret, options), study_questions)
    return pd.concat([declared_rows, simulated], ignore_index=True)


def accept_labels(
    label_rows: pd.DataFrame,
    imported_labels: pd.DataFrame,
    pairs: pd.DataFrame,
    unblinding_key: pd.DataFrame,
    study_questions: pd.DataFrame,
    secret: str,
    options: AnnotationOptions,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Check the label rows against the plan; return people's labels, those of models, and rows set aside.

    Labels of other people's files (`imported_labels`) come in beside: they have no round, and the checks of
    who was assigned what are not theirs.
    """
    if options.simulation.enabled and len(imported_labels):
        raise OptionsError(
            "Labels of files stand beside a simulated panel: they would be marked SIMULATED like its own.",
            [
                Problem(
                    "data_prep.label_files",
                    f"{len(imported_labels)} labels",
                    "none where a panel is simulated",
                )
            ],
            "take the files out of this environment, or turn annotation.simulation off",
        )
    # Texts are compared with every packet that ever was, handed-over and adjudicators' ones included.
    packets = make_packets(pairs, unblinding_key, questions=study_questions)
    labels, set_aside = check_rows(label_rows, unblinding_key, packets, options, _key(secret, options))
    labels = join_imported(labels, imported_labels)
    # What a model made is never among people's labels, so that no table can call it human.
    by_model = (labels["kind"] == "ai").to_numpy(bool)
    people = labels[~by_model].reset_index(drop=True)
    models = labels[by_model].reset_index(drop=True)
    return _marked(people, options), _marked(models, options), _marked(set_aside, options)


def follow_progress(
    annotation_plan: pd.DataFrame, labels: pd.DataFrame, pairs: pd.DataFrame, options: AnnotationOptions
) -> pd.DataFrame:
    """Return how far the round is, for the whole, each annotator and each slice."""
    return _marked(measure_progress(annotation_plan, labels, pairs, options.analysis.slice_by), options)


def queue_for_adjudication(
    pairs: pd.DataFrame, unblinding_key: pd.DataFrame, labels: pd.DataFrame, options: AnnotationOptions
) -> pd.DataFrame:
    """Return the blinded packets that wait for an adjudicator."""
    return queue_disagreements(pairs, unblinding_key, labels, options.primaries, options.simulation.enabled)


def adjudicate(
    annotation_plan: pd.DataFrame, labels: pd.DataFrame, options: AnnotationOptions
) -> pd.DataFrame:
    """Return one label a pair with the rule that gave it, or why there is none yet."""
    return _marked(settle_labels(annotation_plan, labels, options.adjudication, options.primaries), options)


def lay_out_files(blinded_packets: pd.DataFrame, adjudication_queue: pd.DataFrame) -> dict[str, str | bytes]:
    """Return the files that are given to the annotators."""
    return round_files(blinded_packets, adjudication_queue)


def analyse_agreement(
    labels: pd.DataFrame, pairs: pd.DataFrame, options: AnnotationOptions
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return how far people agree, whom they confuse with whom, and how far they agree on each pair."""
    agreement = agreement_of_people(labels, pairs, options.analysis)
    items = item_agreement(labels, pairs, options.analysis)
    return (
        _marked(agreement, options),
        _marked(human_confusion(labels, pairs), options),
        _marked(items, options),
    )


def analyse_annotators(
    labels: pd.DataFrame, pairs: pd.DataFrame, adjudicated_labels: pd.DataFrame, options: AnnotationOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return each annotator's agreement and habits, and their drift over time."""
    table = annotator_table(labels, pairs, adjudicated_labels, options.analysis)
    return _marked(table, options), _marked(annotator_drift(labels, pairs, options.analysis), options)


def compare_with_references(
    labels: pd.DataFrame,
    pairs: pd.DataFrame,
    adjudicated_labels: pd.DataFrame,
    human_agreement: pd.DataFrame,
    options: AnnotationOptions,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return people against the constructed relationship, likely labels, annotators' errors, the ceiling."""
    expected = expected_relationship(labels, pairs, adjudicated_labels, options.analysis)
    posterior, errors = fit_annotator_errors(labels)
    ceiling = human_ceiling(labels, pairs, adjudicated_labels, posterior, human_agreement, options.analysis)
    return (
        _marked(expected, options),
        _marked(posterior, options),
        _marked(errors, options),
        _marked(ceiling, options),
    )


def analyse_study(
    labels: pd.DataFrame,
    pairs: pd.DataFrame,
    study_cases: pd.DataFrame,
    study_questions: pd.DataFrame,
    unblinding_key: pd.DataFrame,
    options: AnnotationOptions,
) -> pd.DataFrame:
    """Return agreement, response rates and ranges of the human attribute study; empty if there is none."""
    asked = asked_answers(unblinding_key, study_questions)
    return _marked(study_results(labels, pairs, study_cases, asked, options.analysis), options)
