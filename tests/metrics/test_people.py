"""Whose labels a table holds."""

import pandas as pd
import pytest

from judge_calibration.metrics.analyses import possible_analyses
from judge_calibration.metrics.people import kinds_of, of_people

LABELS = pd.DataFrame({"pair_id": ["a", "b", "c"], "label": "A", "kind": ["human", "simulated", None]})


def test_labels_without_a_maker_are_peoples():
    assert of_people(LABELS)["pair_id"].tolist() == ["a", "c"]
    assert len(of_people(LABELS.drop(columns="kind"))) == 3


def test_settled_labels_say_it_in_reference_kind():
    settled = pd.DataFrame({"label": ["A", "B"], "reference_kind": ["simulated", "human"]})
    joined = pd.concat([LABELS, settled], ignore_index=True)
    assert kinds_of(joined).tolist() == ["human", "simulated", "human", "simulated", "human"]


@pytest.mark.parametrize(("kind", "allowed"), [("ai", False), ("human", True)])
def test_what_a_model_labelled_allows_no_analysis_of_people(kind, allowed):
    about = {"attribute": None, "kind": kind, "annotator_id": ["one"] * 3 + ["two"] * 3}
    found = possible_analyses(labels=pd.concat([LABELS, LABELS]).assign(**about))
    (ceiling,) = [one for one in found if one.name == "agreement of people (the ceiling)"]
    assert ceiling.allowed is allowed
