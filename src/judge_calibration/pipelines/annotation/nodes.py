"""Nodes of the pipeline `annotation`."""

from __future__ import annotations

import logging

import pandas as pd

from judge_calibration.labelling.adjudication import measure_progress, queue_disagreements, settle_labels
from judge_calibration.labelling.handing_out import round_files
from judge_calibration.labelling.identity import RoundKey
from judge_calibration.labelling.importing import check_rows, given_packets, read_label_files
from judge_calibration.labelling.packets import make_packets, primary_packets
from judge_calibration.labelling.planning import plan_round
from judge_calibration.options.annotation import AnnotationOptions

logger = logging.getLogger(__name__)


def _key(secret: str, options: AnnotationOptions) -> RoundKey:
    return RoundKey(secret or None, options.round_id)


def read_labels_given(options: AnnotationOptions) -> pd.DataFrame:
    """Read the declared label files; the result holds code names and stays in memory."""
    return read_label_files(options.labels, options.codes)


def plan_labelling(
    pairs: pd.DataFrame, label_rows: pd.DataFrame, secret: str, options: AnnotationOptions
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Plan the round: who labels what, the key that un-blinds, and what each critical slice gets."""
    key = _key(secret, options)
    planned = plan_round(pairs, options, key, given_packets(label_rows, key))
    if key.kind == "practice":
        logger.warning(
            "No secret is set: packet ids and pseudonyms come from a published practice key. Before people "
            "label, set JUDGE_CALIBRATION_ANNOTATION_SECRET."
        )
    unassigned = int((planned.plan["status"] == "unassigned").sum())
    if unassigned:
        logger.warning(
            "%d slots of the round have no competent annotator with room; see annotation_plan.", unassigned
        )
    return planned


def blind_packets(
    pairs: pd.DataFrame, unblinding_key: pd.DataFrame, options: AnnotationOptions
) -> pd.DataFrame:
    """Return what the primary annotators see."""
    return primary_packets(pairs, unblinding_key, options.simulation.enabled)


def accept_labels(
    label_rows: pd.DataFrame,
    pairs: pd.DataFrame,
    unblinding_key: pd.DataFrame,
    secret: str,
    options: AnnotationOptions,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Check the label rows against the plan; return the labels, and the rows set aside with their reason."""
    # Texts are compared with every packet that ever was, handed-over and adjudicators' ones included.
    packets = make_packets(pairs, unblinding_key)
    return check_rows(label_rows, unblinding_key, packets, options, _key(secret, options))


def follow_progress(
    annotation_plan: pd.DataFrame, labels: pd.DataFrame, pairs: pd.DataFrame, options: AnnotationOptions
) -> pd.DataFrame:
    """Return how far the round is, for the whole, each annotator and each slice."""
    return measure_progress(annotation_plan, labels, pairs, options.analysis.slice_by)


def queue_for_adjudication(
    pairs: pd.DataFrame, unblinding_key: pd.DataFrame, labels: pd.DataFrame, options: AnnotationOptions
) -> pd.DataFrame:
    """Return the blinded packets that wait for an adjudicator."""
    return queue_disagreements(pairs, unblinding_key, labels, options.primaries, options.simulation.enabled)


def adjudicate(
    annotation_plan: pd.DataFrame, labels: pd.DataFrame, options: AnnotationOptions
) -> pd.DataFrame:
    """Return one label a pair with the rule that gave it, or why there is none yet."""
    return settle_labels(annotation_plan, labels, options.adjudication, options.primaries)


def lay_out_files(
    blinded_packets: pd.DataFrame, adjudication_queue: pd.DataFrame, options: AnnotationOptions
) -> dict[str, str | bytes]:
    """Return the files that are given to the annotators."""
    return round_files(blinded_packets, adjudication_queue)
