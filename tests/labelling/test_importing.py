import io
from datetime import datetime

import pytest
from labelling_helpers import in_shown_order, label_rows, make_options
from openpyxl import Workbook

from judge_calibration import schemas
from judge_calibration.errors import SourceError
from judge_calibration.labelling.importing import (
    _pair_reason,
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
            SourceError,
            match=r"(?s)nothing was imported.*labels\.csv, row 5, column label: found 'maybe' "
            r"\(unknown_label\); wanted one of A, B",
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

    @pytest.mark.parametrize(
        "damage",
        [
            lambda packet: packet.replace("-", "\u2013"),
            lambda packet: f'="{packet}"',
            lambda packet: f"{packet}\u200b",
            lambda packet: packet[:12],
        ],
        ids=["long dashes", "formula", "hidden character", "cut"],
    )
    def test_what_a_spreadsheet_makes_of_an_id_is_told_from_an_unknown_packet(self, a_round, damage):
        rows = label_rows(_primary(a_round, 2), lambda row: "A")
        rows.loc[0, "packet_id"] = damage(rows["packet_id"][0])
        rows.loc[1, "packet_id"] = "somebody elses words"
        assert _reasons(a_round, rows) == ["id_damaged_by_spreadsheet", "unknown_packet"]

    def test_a_file_without_a_single_id_is_refused_row_by_row(self, a_round):
        rows = label_rows(_primary(a_round, 2), lambda row: "A")
        rows["packet_id"] = None
        assert _reasons(a_round, rows.astype({"packet_id": "str"})) == ["id_missing", "id_missing"]

    def test_unknown_pair_and_leading_zeros_lost(self, a_round):
        rows = label_rows(_primary(a_round, 2), lambda row: "TIE", annotator="annotator_1", pair_id="nowhere")
        rows["packet_id"] = rows["packet_id"].where(rows.index < 0, None)
        rows.loc[1, "pair_id"] = "1.2E+5"
        assert _reasons(a_round, rows.astype({"packet_id": "str"})) == [
            "unknown_pair",
            "id_damaged_by_spreadsheet",
        ]

    @pytest.mark.parametrize(
        ("issued", "came", "reason"),
        [
            ("007", "7", "id_damaged_by_spreadsheet"),
            ("12345678901234567890", "12345678901234500000", "id_damaged_by_spreadsheet"),
            ("12345678901234567890", "1.23457E+19", "id_damaged_by_spreadsheet"),
            ("1-3", "2026-03-01T00:00:00", "id_damaged_by_spreadsheet"),
            ("1-3", "03.01.2026", "id_damaged_by_spreadsheet"),
            ("007", "8", "unknown_pair"),
        ],
    )
    def test_pair_ids_that_a_spreadsheet_took_for_numbers_or_dates(self, issued, came, reason):
        assert _pair_reason(came, {issued}) == reason


class TestMessages:
    """Every message names file, row as a spreadsheet shows it, column, found value and what is wanted."""

    FAULTS = (
        ("packet_id", "1.23457E+12", "column packet_id: found '1.23457E+12' (id_damaged_by_spreadsheet)"),
        ("packet_id", None, "column packet_id: found nothing (id_missing)"),
        ("label", "C", "column label: found 'C' (unknown_label)"),
        ("reason_codes", "vibes", "column reason_codes: found 'vibes' (unknown_reason_code)"),
        ("attribute", "warmth", "column label: found an answer about 'warmth' (unknown_attribute)"),
        ("labelled_at", "01/02/2026", "column labelled_at: found '01/02/2026' (time_unreadable)"),
        ("labelled_at", "2025-12-31", "given out, 2026-01-01T00:00:00+00:00"),
        ("answer_b", "moved", "column answer_b: found 'moved' (columns_shuffled)"),
        ("label", "x" * 200, "found 'xxxxx"),
    )

    @pytest.mark.parametrize(("column", "value", "told"), FAULTS)
    def test_place_column_found_and_wanted(self, a_round, column, value, told):
        rows = label_rows(_primary(a_round), lambda row: "TIE", file="back/sheet.csv")
        rows.loc[2, column] = value
        with pytest.raises(SourceError) as refused:
            _check(a_round, rows)
        (problem,) = refused.value.problems
        assert str(problem).startswith("back/sheet.csv, row 4, column ")
        assert told in str(problem)
        assert len(problem.found) < 120
        assert problem.wanted

    def test_the_rows_set_aside_say_the_same(self, a_round):
        rows = label_rows(_primary(a_round), lambda row: "TIE", file="/home/ann/back/sheet.csv")
        rows.loc[2, "label"] = "ask ann@example.org"
        (row,) = _check(a_round, rows, on_problem="set_aside").set_aside.to_dict("records")
        assert (row["file"], row["row"], row["column"]) == ("sheet.csv", 4, "label")
        assert row["found"] == "'ask [address removed]'"
        assert row["label"] == "ASK [address removed]"
        assert row["wanted"].startswith("one of A, B")

    def test_conflicts_say_where_the_other_label_is(self, a_round):
        import pandas as pd

        one = label_rows(_primary(a_round, 1), lambda row: "TIE", file="one.csv")
        two = label_rows(_primary(a_round, 1), lambda row: "ABSTAIN", file="two.csv")
        with pytest.raises(SourceError) as refused:
            _check(a_round, pd.concat([one, two], ignore_index=True))
        assert [p.found for p in refused.value.problems] == [
            "'TIE', and 'ABSTAIN' in two.csv, row 2 (conflicting_labels)",
            "'ABSTAIN', and 'TIE' in one.csv, row 2 (conflicting_labels)",
        ]

    def test_rows_are_counted_as_a_spreadsheet_does(self, a_round):
        # Line breaks in a cell are one row; an empty row is a row.
        packets = _primary(a_round, 2)["packet_id"].tolist()
        text = f'packet_id,label,comment\n{packets[0]},A,"two\nlines"\n\n{packets[1]},C,\n'
        rows = read_label_file(text.encode(), LabelFileOptions(path="a.csv"))
        with pytest.raises(SourceError, match=r"a\.csv, row 4, column label: found 'C'"):
            _check(a_round, rows)

    def test_an_unknown_person_is_masked(self, a_round, tmp_path):
        sheet = tmp_path / "labels.csv"
        sheet.write_text(
            f"packet_id,label,annotator\n{_primary(a_round)['packet_id'].iloc[0]},A,Ann Example\n"
        )
        files = ImportOptions(files=[LabelFileOptions(path=str(sheet))])
        rows = read_label_files(files, a_round.options.codes)
        with pytest.raises(
            SourceError, match=r"column annotator: found 'A\.\.\. \(11 characters\)'"
        ) as refused:
            _check(a_round, rows)
        assert "Example" not in str(refused.value)


class TestWhoseFile:
    """A file that is declared for one person, or named after one, holds that person's labels only."""

    def _of(self, a_round, code, count=2):
        primary = a_round.unblinding[a_round.unblinding["stage"] == "primary"]
        return primary[primary["annotator_id"] == a_round.key.pseudonym(code)].head(count)

    def _read(self, a_round, tmp_path, name, owner, declared=None, said=None):
        sheet = tmp_path / name
        lines = [
            f"{packet},TIE,{who}"
            for packet, who in zip(self._of(a_round, owner)["packet_id"], said or ["", ""], strict=True)
        ]
        sheet.write_text("\n".join(["packet_id,label,annotator", *lines]))
        files = ImportOptions(files=[LabelFileOptions(path=str(sheet), annotator=declared)])
        return read_label_files(files, a_round.options.codes)

    @pytest.mark.parametrize("by", ["code", "pseudonym"])
    def test_a_file_named_after_another_person_is_refused(self, a_round, tmp_path, by):
        stem = "annotator_1" if by == "code" else a_round.key.pseudonym("annotator_1")
        own = self._read(a_round, tmp_path, f"{stem} (2).csv", "annotator_1")
        assert len(_check(a_round, own).labels) == 2
        rows = self._read(a_round, tmp_path, f"{stem} (2).csv", "annotator_2")
        with pytest.raises(SourceError, match=r"not_of_this_file.*wanted a packet of annotator_1") as refused:
            _check(a_round, rows)
        assert "row 2, column packet_id" in str(refused.value)
        assert a_round.key.pseudonym("annotator_2") in str(refused.value)

    def test_a_file_named_after_nobody_or_after_both_is_taken(self, a_round, tmp_path):
        for name in ("monday.csv", "annotator_1 and annotator_2.csv"):
            assert len(_check(a_round, self._read(a_round, tmp_path, name, "annotator_2")).labels) == 2

    def test_a_declared_file_with_anothers_rows_is_refused(self, a_round, tmp_path):
        rows = self._read(a_round, tmp_path, "back.csv", "annotator_2", declared="annotator_1")
        with pytest.raises(SourceError, match=r"not_assigned.*wanted a packet of annotator_1"):
            _check(a_round, rows)

    def test_a_row_that_names_another_person_than_is_declared_is_refused(self, a_round, tmp_path):
        said = ["annotator_1", "annotator_2"]
        rows = self._read(a_round, tmp_path, "back.csv", "annotator_1", "annotator_1", said)
        with pytest.raises(
            SourceError, match=r"found 'annotator_2' .annotator_contradicted.; wanted annotator_1"
        ):
            _check(a_round, rows)

    def test_one_unknown_name_in_a_declared_file_is_that_person(self, a_round, tmp_path):
        rows = self._read(a_round, tmp_path, "back.csv", "annotator_1", "annotator_1", ["ann", "ann"])
        assert len(_check(a_round, rows).labels) == 2

    def test_two_names_in_a_file_declared_for_one_are_refused(self, a_round, tmp_path):
        rows = self._read(a_round, tmp_path, "back.csv", "annotator_1", "annotator_1", ["ann", "bob"])
        assert set(_reasons(a_round, rows)) == {"several_people"}

    def test_the_packets_own_table_names_people_by_pseudonym(self, a_round, tmp_path):
        said = [a_round.key.pseudonym("annotator_1")] * 2
        rows = self._read(a_round, tmp_path, "back.csv", "annotator_1", said=said)
        assert len(_check(a_round, rows).labels) == 2
        rows = self._read(a_round, tmp_path, "back.csv", "annotator_2", said=said)
        assert set(_reasons(a_round, rows)) == {"not_assigned"}
        rows = self._read(a_round, tmp_path, "back.csv", "annotator_1", said=["ann_bcdfghjk"] * 2)
        assert set(_reasons(a_round, rows)) == {"unknown_annotator"}


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

    def test_a_formula_without_a_result_is_refused_and_not_lost(self, a_round):
        # Programs that write workbooks store no result beside a formula; such a cell reads as empty.
        book = Workbook()
        book.active.append(["packet_id", "label", "comment"])
        packet = a_round.packets["packet_id"][0]
        book.active.append([packet, '="A"', "=1+1"])
        data = io.BytesIO()
        book.save(data)
        rows = read_label_file(data.getvalue(), LabelFileOptions(path="labels.xlsx"))
        assert rows.loc[0, ["label", "comment", "state"]].tolist() == ['="A"', "=1+1", "completed"]
        assert _reasons(a_round, rows) == ["unknown_label"]

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
        assert list(rows["annotator"].fillna("none")) == [
            "annotator_1",
            "annotator_2",
            "?c... (16 characters)",
            "none",
        ]

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
