"""Label Studio's JSON export as it really comes: ids or people, aliases or texts, skips, updates, repeats."""

import json
from xml.etree import ElementTree

import pytest
from labelling_helpers import make_options

from judge_calibration.errors import SourceError
from judge_calibration.labelling.importing import check_rows, read_label_file
from judge_calibration.labelling.label_studio import labelling_config, tasks
from judge_calibration.options.annotation import LabelFileOptions

FILE = LabelFileOptions(path="export.json")


def _choice(name, *choices):
    return {"from_name": name, "to_name": "question", "type": "choices", "value": {"choices": list(choices)}}


def _annotation(result, who=7, cancelled=False, at="2026-02-01T10:00:00.123456Z", updated=None):
    return {
        "id": 1,
        "completed_by": who,
        "result": result,
        "was_cancelled": cancelled,
        "created_at": at,
        "updated_at": updated or at,
    }


def _export(a_round, *annotations, place=0):
    own = a_round.packets.iloc[[place]]
    return json.dumps([tasks(own)[0] | {"id": 1, "annotations": list(annotations)}]).encode()


class TestReadExport:
    def test_label_reasons_comment_and_time_of_the_last_update(self, a_round):
        said = [
            _choice("overall", "B"),
            _choice("reason_codes", "correctness", "style"),
            {"from_name": "comment", "type": "textarea", "value": {"text": ["short"]}},
        ]
        row = read_label_file(_export(a_round, _annotation(said, updated="2026-02-02T10:00:00Z")), FILE).iloc[
            0
        ]
        assert (row["label"], row["reason_codes"], row["comment"]) == ("B", "correctness;style", "short")
        assert (row["annotator"], row["labelled_at"], row["state"]) == (
            "7",
            "2026-02-02T10:00:00Z",
            "completed",
        )

    def test_texts_of_the_screen_are_read_like_their_aliases(self, a_round):
        said = [_choice("overall", "Tie: neither is better"), _choice("reason_codes", "Citation support")]
        row = read_label_file(_export(a_round, _annotation(said)), FILE).iloc[0]
        assert (row["label"], row["reason_codes"]) == ("TIE", "citation_support")

    @pytest.mark.parametrize("who", [7, {"id": 7}, {"id": 7, "email": "ann@example.org"}])
    def test_people_as_numbers_or_records(self, a_round, who):
        row = read_label_file(_export(a_round, _annotation([_choice("overall", "A")], who)), FILE).iloc[0]
        assert row["annotator"] == ("ann@example.org" if isinstance(who, dict) and "email" in who else "7")

    def test_states(self, a_round):
        skipped = _annotation([], cancelled=True)
        rows = read_label_file(_export(a_round, skipped, _annotation([])), FILE)
        assert list(rows["state"]) == ["skipped", "empty"]
        assert list(read_label_file(_export(a_round), FILE)["state"]) == ["open"]

    def test_a_skip_and_then_a_label_is_a_label(self, a_round):
        said = [_choice("overall", "ABSTAIN")]
        data = _export(a_round, _annotation([], cancelled=True), _annotation(said), _annotation(said))
        declared = LabelFileOptions(path="export.json", annotator=_owner(a_round, 0))
        out = _check(a_round, read_label_file(data, declared))
        assert list(out.labels["label"]) == ["ABSTAIN"]
        assert sorted(out.set_aside["reason"]) == ["repeated", "skipped"]

    def test_another_user_in_ones_project_is_not_assigned(self, a_round):
        other = next(c for c in a_round.options.codes if c != _owner(a_round, 0))
        data = _export(a_round, _annotation([_choice("overall", "A")]))
        rows = read_label_file(data, LabelFileOptions(path="export.json", annotator=other))
        assert list(_check(a_round, rows, on_problem="set_aside").set_aside["reason"]) == ["not_assigned"]

    def test_several_users_in_one_persons_project_are_refused(self, a_round):
        said = [_choice("overall", "A")]
        data = _export(a_round, _annotation(said, who=7), _annotation(said, who=8))
        declared = LabelFileOptions(path="export.json", annotator=_owner(a_round, 0))
        rows = _unnamed(read_label_file(data, declared))
        with pytest.raises(
            SourceError, match=r"export.json, task 1 \(id 1\), column completed_by: found '7'"
        ):
            _check(a_round, rows)

    def test_a_label_that_somebody_else_changed_is_refused(self, a_round):
        annotation = _annotation([_choice("overall", "A")], who=7)
        declared = LabelFileOptions(path="export.json", annotator=_owner(a_round, 0))
        own = read_label_file(_export(a_round, annotation | {"updated_by": 7}), declared)
        assert len(_check(a_round, own).labels) == 1
        rows = read_label_file(_export(a_round, annotation | {"updated_by": {"id": 1}}), declared)
        with pytest.raises(SourceError, match=r"column updated_by: found '1' \(changed_by_another\)"):
            _check(a_round, rows)

    @pytest.mark.parametrize(
        ("parent", "reasons"),
        [
            ({"parent_prediction": 5}, ["begun_from_another"]),
            ({"parent_prediction": {"id": 5}}, ["begun_from_another"]),
            ({"parent_annotation": 99}, ["begun_from_another"]),  # of nobody that is known
            ({"parent_annotation": 1}, []),  # a copy of one's own
            ({"parent_prediction": None, "parent_annotation": None}, []),
        ],
    )
    def test_a_label_begun_from_a_prediction_or_a_copy_is_refused(self, a_round, parent, reasons):
        first = _annotation([_choice("overall", "A")], cancelled=True)
        second = _annotation([_choice("overall", "A")]) | {"id": 2} | parent
        options = make_options(labels={"on_problem": "set_aside"})
        rows = read_label_file(_export(a_round, first, second), FILE).assign(annotator=None)
        rows = rows.astype({"annotator": "str"})
        out = check_rows(rows, a_round.unblinding, a_round.packets, options, a_round.key)
        assert [reason for reason in out.set_aside["reason"] if reason != "skipped"] == reasons
        assert len(out.labels) == (0 if reasons else 1)

    def test_messages_name_task_and_field(self, a_round):
        rows = read_label_file(_export(a_round, _annotation([_choice("overall", "A", "B")])), FILE)
        with pytest.raises(
            SourceError,
            match=r"export.json, task 1 \(id 1\), column overall: found 'A and B' \(unknown_label\)",
        ):
            _check(a_round, rows.assign(annotator=None, said_by=None).astype({"annotator": "str"}))

    def test_two_choices_at_once_are_no_label(self, a_round):
        declared = LabelFileOptions(path="export.json", annotator=_owner(a_round, 0))
        rows = read_label_file(_export(a_round, _annotation([_choice("overall", "A", "B")])), declared)
        assert list(_check(a_round, rows, on_problem="set_aside").set_aside["reason"]) == ["unknown_label"]

    @pytest.mark.parametrize(
        ("data", "found"),
        [
            (b"{", "is no JSON"),
            (b"{}", "a JSON dict"),
            (b'[{"data": {}}]', "no data.packet_id"),
            (b'[{"packet_id": "x", "overall": "A"}]', "no data.packet_id"),
            (b'[{"data": {"packet_id": "x"}}]', "no list of annotations"),
            (b'[{"data": {"packet_id": "x"}, "annotations": [5]}]', "without its answers"),
        ],
    )
    def test_other_files_are_refused(self, data, found):
        with pytest.raises(SourceError, match=found):
            read_label_file(data, FILE)


def _owner(a_round, place):
    pseudonym = a_round.packets["annotator_id"].iloc[place]
    return next(c for c in a_round.options.codes if a_round.key.pseudonym(c) == pseudonym)


def _unnamed(rows):
    """Return the rows as the reading of several files leaves them: users whom nobody knows are marked."""
    return rows.assign(said_by="?" + rows["said_by"])


def _check(a_round, rows, **labels):
    return check_rows(rows, a_round.unblinding, a_round.packets, make_options(labels=labels), a_round.key)


class TestScreen:
    def test_it_is_xml_with_every_label_and_reason(self):
        view = ElementTree.fromstring(labelling_config(attributes=2, simulated=True))
        aliases = [choice.get("alias") for choice in view.iter("Choice")]
        assert aliases[:4] == ["A", "B", "TIE", "ABSTAIN"]
        assert aliases.count("A") == 3
        assert "citation_support" in aliases
        assert any(header.get("value") == "SIMULATED" for header in view.iter("Header"))

    def test_attributes_appear_after_the_overall_preference(self):
        view = ElementTree.fromstring(labelling_config(attributes=1))
        boxes = [box for box in view.iter("View") if box.get("visibleWhen")]
        assert [box.get("whenTagName") for box in boxes] == ["overall"]
