from datetime import datetime

import pytest
from labelling_helpers import in_shown_order, label_rows, make_options

from judge_calibration import schemas
from judge_calibration.errors import SourceError
from judge_calibration.labelling.importing import (
    check_rows,
    given_packets,
    read_identities,
    read_label_file,
    read_label_files,
)
from judge_calibration.labelling.spreadsheets import packets_as_csv, packets_as_xlsx
from judge_calibration.options.annotation import ImportOptions, LabelFileOptions


def _check(a_round, rows, **labels):
    options = make_options(labels=labels)
    return check_rows(rows, a_round.unblinding, a_round.packets, options, a_round.key)


def _primary(a_round, count=6):
    return a_round.unblinding[a_round.unblinding["stage"] == "primary"].head(count)


def _reasons(a_round, rows, **labels):
    return list(_check(a_round, rows, on_problem="set_aside", **labels).set_aside["reason"])


class TestAccepted:
    def test_labels_are_turned_to_candidate_identity(self, a_round):
        # Everybody means candidate A, whatever was shown first.
        rows = label_rows(a_round.unblinding, lambda row: in_shown_order(row, "A"))
        labels = _check(a_round, rows).labels
        assert len(labels) == len(a_round.unblinding)
        assert set(labels["label"]) == {"A"}
        assert set(labels["order"]) == {"AB", "BA"}
        schemas.check(labels, schemas.LABELS)

    def test_no_label_at_all_is_an_empty_table(self, a_round):
        out = _check(a_round, label_rows(a_round.unblinding.head(0), lambda row: "A"))
        assert out.labels.empty
        assert list(out.labels.columns[:8]) == schemas.LABELS.column_names
        assert out.set_aside.empty

    def test_pair_id_labels_are_by_identity_already(self, a_round):
        rows = label_rows(_primary(a_round), lambda row: "A")
        keyed = a_round.unblinding.set_index("packet_id").loc[rows["packet_id"]]
        codes = {a_round.key.pseudonym(code): code for code in a_round.options.codes}
        rows["pair_id"] = keyed["pair_id"].to_numpy()
        rows["annotator"] = [codes[a] for a in keyed["annotator_id"]]
        rows["packet_id"] = None
        labels = _check(a_round, rows.astype({"packet_id": "str"})).labels
        assert set(labels["label"]) == {"A"}
        assert len(labels) == 6

    def test_addresses_in_comments_are_removed(self, a_round):
        rows = label_rows(
            _primary(a_round, 1), lambda row: "TIE", comment="ask ann@example.org or +49 170 1234567"
        )
        assert _check(a_round, rows).labels["comment"][0] == "ask [address removed] or [address removed]"

    def test_upper_case_ids_and_lower_case_labels_are_the_same(self, a_round):
        rows = label_rows(_primary(a_round, 1), lambda row: " tie ")
        rows["packet_id"] = rows["packet_id"].str.upper()
        assert list(_check(a_round, rows).labels["label"]) == ["TIE"]


class TestRefused:
    def test_one_bad_row_refuses_the_import_and_names_row_and_reason(self, a_round):
        rows = label_rows(_primary(a_round), lambda row: "TIE")
        rows.loc[3, "label"] = "maybe"
        with pytest.raises(
            SourceError, match=r"(?s)nothing was imported.*labels.csv, row 5: found unknown_label"
        ):
            _check(a_round, rows)

    @pytest.mark.parametrize(
        ("column", "value", "reason"),
        [
            ("annotator", "?", "unknown_annotator"),
            ("packet_id", "1.23457E+12", "id_damaged_by_spreadsheet"),
            ("packet_id", "1-Mar", "id_damaged_by_spreadsheet"),
            ("packet_id", "#NAME?", "id_damaged_by_spreadsheet"),
            ("packet_id", "bcdf-bcdf-bcdf", "id_damaged_by_spreadsheet"),
            ("packet_id", None, "id_missing"),
            ("packet_id", "somebody else's", "unknown_packet"),
            ("label", "C", "unknown_label"),
            ("reason_codes", "correctness;vibes", "unknown_reason_code"),
            ("attribute", "warmth", "unknown_attribute"),
            ("labelled_at", "01/02/2026", "time_unreadable"),
            ("labelled_at", "46054.5", "time_unreadable"),
            ("labelled_at", "2025-12-31T23:59:59Z", "older_than_packet"),
            ("answer_a", "another answer", "columns_shuffled"),
            ("question", "another question", "columns_shuffled"),
            ("state", "empty", "empty_annotation"),
        ],
    )
    def test_each_kind_of_fault_has_its_reason(self, a_round, column, value, reason):
        rows = label_rows(_primary(a_round), lambda row: "TIE")
        rows.loc[0, column] = value
        assert _reasons(a_round, rows) == [reason]

    def test_a_slip_of_the_hand_is_told_from_an_unknown_packet(self, a_round):
        rows = label_rows(_primary(a_round, 1), lambda row: "TIE")
        packet = rows.loc[0, "packet_id"]
        wrong = "b" if packet[0] != "b" else "c"
        rows.loc[0, "packet_id"] = wrong + packet[1:]
        assert _reasons(a_round, rows) == ["id_mistyped"]

    def test_a_packet_of_another_person_is_not_assigned(self, a_round):
        rows = label_rows(_primary(a_round, 1), lambda row: "TIE")
        owner = a_round.unblinding["annotator_id"][0]
        other = next(c for c in a_round.options.codes if a_round.key.pseudonym(c) != owner)
        rows["annotator"] = other
        assert _reasons(a_round, rows) == ["not_assigned"]

    def test_unknown_pair_and_leading_zeros_lost(self, a_round):
        rows = label_rows(_primary(a_round, 2), lambda row: "TIE", annotator="annotator_1", pair_id="nowhere")
        rows["packet_id"] = rows["packet_id"].where(rows.index < 0, None)
        rows.loc[1, "pair_id"] = "1.2E+5"
        assert _reasons(a_round, rows.astype({"packet_id": "str"})) == [
            "unknown_pair",
            "id_damaged_by_spreadsheet",
        ]


class TestRepeats:
    def _twice(self, a_round, first, second, times):
        one = label_rows(_primary(a_round, 1), lambda row: first, labelled_at=times[0])
        two = label_rows(_primary(a_round, 1), lambda row: second, labelled_at=times[1])
        import pandas as pd

        return pd.concat([one, two], ignore_index=True)

    EARLY, LATE = "2026-02-01T10:00:00+00:00", "2026-02-02T10:00:00+00:00"

    def test_the_same_label_twice_counts_once(self, a_round):
        out = _check(a_round, self._twice(a_round, "TIE", "TIE", (self.EARLY, self.LATE)))
        assert len(out.labels) == 1
        assert list(out.set_aside["reason"]) == ["repeated"]

    def test_two_different_labels_are_refused_by_default(self, a_round):
        with pytest.raises(SourceError, match="conflicting_labels"):
            _check(a_round, self._twice(a_round, "TIE", "ABSTAIN", (self.EARLY, self.LATE)))

    def test_the_last_one_with_time_stands_if_declared(self, a_round):
        rows = self._twice(a_round, "TIE", "ABSTAIN", (self.LATE, self.EARLY))
        out = _check(a_round, rows, conflict="last")
        assert list(out.labels["label"]) == ["TIE"]
        assert list(out.set_aside["reason"]) == ["superseded"]

    @pytest.mark.parametrize("times", [(None, "2026-02-02T10:00:00Z"), ("2026-02-02T10:00:00Z",) * 2])
    def test_without_a_time_on_each_the_last_is_unknown(self, a_round, times):
        rows = self._twice(a_round, "TIE", "ABSTAIN", times)
        assert _reasons(a_round, rows, conflict="last") == ["conflicting_labels"] * 2


def _fill(data: bytes, label: str = "TIE") -> bytes:
    import csv
    import io

    table = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    place = table[0].index("label")
    for row in table[1:]:
        row[place] = label
    out = io.StringIO()
    csv.writer(out).writerows(table)
    return out.getvalue().encode()


class TestSpreadsheets:
    def _own(self, a_round):
        owner = a_round.packets["annotator_id"][0]
        primary = a_round.unblinding.loc[a_round.unblinding["stage"] == "primary", "packet_id"]
        packets = a_round.packets[a_round.packets["packet_id"].isin(primary)]
        return packets[packets["annotator_id"] == owner]

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_encodings_and_delimiters(self, a_round, encoding, delimiter):
        import csv
        import io

        own = self._own(a_round)
        table = list(csv.reader(io.StringIO(_fill(packets_as_csv(own)).decode(), newline="")))
        table[1][table[0].index("comment")] = "naïve – “quoted”"
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter).writerows(table)
        rows = read_label_file(out.getvalue().encode(encoding), LabelFileOptions(path="a.csv"))
        assert len(rows) == len(own)
        assert rows["comment"][0] == "naïve – “quoted”"
        assert set(_check(a_round, rows).labels["label"]) == {"TIE"}

    def test_shuffled_columns_are_found_by_name(self, a_round):
        import csv
        import io

        table = list(csv.reader(io.StringIO(_fill(packets_as_csv(self._own(a_round))).decode(), newline="")))
        out = io.StringIO()
        csv.writer(out).writerows([row[::-1] for row in table])
        rows = read_label_file(out.getvalue().encode(), LabelFileOptions(path="a.csv"))
        assert len(_check(a_round, rows).labels) == len(table) - 1

    def test_a_column_sorted_apart_is_refused(self, a_round):
        import csv
        import io

        table = list(csv.reader(io.StringIO(_fill(packets_as_csv(self._own(a_round))).decode(), newline="")))
        place = table[0].index("packet_id")
        for row, moved in zip(table[1:], sorted(row[place] for row in table[1:]), strict=True):
            row[place] = moved
        out = io.StringIO()
        csv.writer(out).writerows(table)
        rows = read_label_file(out.getvalue().encode(), LabelFileOptions(path="a.csv"))
        assert set(_reasons(a_round, rows)) == {"columns_shuffled"}

    @pytest.mark.parametrize("damage", ["cp1252 with question marks", "UTF-8 taken for cp1252"])
    def test_texts_damaged_by_an_encoding_are_the_same_texts(self, a_round, damage):
        own = self._own(a_round).copy()
        own["question"] = "Größer → kleiner: " + own["question"]
        packets = a_round.packets.set_index("packet_id")
        packets.loc[own["packet_id"], "question"] = own["question"].to_numpy()
        text = _fill(packets_as_csv(own)).decode()
        if damage.startswith("cp1252"):
            data = text.encode("cp1252", "replace")
        else:
            data = text.encode().decode("cp1252", "replace").encode()
        rows = read_label_file(data, LabelFileOptions(path="a.csv"))
        options = make_options()
        out = check_rows(rows, a_round.unblinding, packets.reset_index(), options, a_round.key)
        assert len(out.labels) == len(own)

    def test_a_half_filled_sheet_is_taken_as_far_as_it_goes(self, a_round):
        rows = read_label_file(packets_as_csv(self._own(a_round)), LabelFileOptions(path="a.csv"))
        out = _check(a_round, rows)
        assert out.labels.empty
        assert set(out.set_aside["reason"]) == {"open"}

    def test_workbook_round_trip(self, a_round, tmp_path):
        from openpyxl import load_workbook

        own = self._own(a_round)
        path = tmp_path / "own.xlsx"
        path.write_bytes(packets_as_xlsx(own))
        book = load_workbook(path)
        sheet = book["labels"]
        header = [cell.value for cell in sheet[1]]
        for row in range(2, len(own) + 2):
            sheet.cell(row, header.index("label") + 1).value = "ABSTAIN"
            sheet.cell(row, header.index("labelled_at") + 1).value = datetime(2026, 2, 3, 4, 5, 6)
        book.save(path)
        rows = read_label_file(path.read_bytes(), LabelFileOptions(path=str(path)))
        labels = _check(a_round, rows).labels
        assert len(labels) == len(own)
        assert set(labels["labelled_at"]) == {"2026-02-03T04:05:06+00:00"}

    def test_a_sheet_without_ids_or_labels_is_refused(self):
        with pytest.raises(SourceError, match=r"(?s)packet_id.*a column label"):
            read_label_file(b"a,b\n1,2\n", LabelFileOptions(path="a.csv"))

    def test_bytes_that_are_no_text_are_refused(self):
        with pytest.raises(SourceError, match="no encoding"):
            read_label_file(b"packet_id,label\n\x81\x8d\xff,A\n", LabelFileOptions(path="a.csv"))

    def test_an_ending_that_says_nothing_is_refused(self):
        with pytest.raises(SourceError, match="no ending"):
            read_label_file(b"", LabelFileOptions(path="labels.docx"))


class TestIdentities:
    def test_names_are_replaced_and_strangers_are_not_kept(self, tmp_path):
        who = tmp_path / "who.csv"
        who.write_text("known_as,annotator\nAnn@Example.org,annotator_1\n7,annotator_2\n")
        sheet = tmp_path / "labels.csv"
        sheet.write_text(
            "packet_id,label,annotator\nx,A,ann@example.org\ny,B,7\nz,A,carl@example.org\nw,A,\n"
        )
        options = ImportOptions(files=[LabelFileOptions(path=str(sheet))], identities=str(who))
        rows = read_label_files(options, ("annotator_1", "annotator_2"))
        assert list(rows["annotator"].fillna("none")) == ["annotator_1", "annotator_2", "?", "none"]

    def test_missing_files_are_named_together(self, tmp_path):
        files = [LabelFileOptions(path=str(tmp_path / name)) for name in ("one.csv", "two.csv")]
        with pytest.raises(SourceError, match=r"(?s)one\.csv.*two\.csv"):
            read_label_files(ImportOptions(files=files), ())

    def test_one_name_for_two_people_is_refused(self):
        data = b"known_as,annotator\nann,annotator_1\nANN,annotator_2\n"
        with pytest.raises(SourceError, match="row 3, column known_as"):
            read_identities(data, "who.csv", ("annotator_1", "annotator_2"))


def test_given_packets_take_the_earliest_time(a_round):
    rows = label_rows(_primary(a_round, 2), lambda row: "A")
    rows.loc[1, "labelled_at"] = None
    given = given_packets(rows, a_round.key)
    assert given[rows["packet_id"][0]].isoformat() == "2026-02-01T10:00:00+00:00"
    assert given[rows["packet_id"][1]] is None
