"""Attacks on the packets: nothing that was hidden can be found in, or guessed from, what annotators get."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from labelling_helpers import SECRET, Round, fabricate_pairs, label_rows, make_options

from judge_calibration.labelling.adjudication import queue_disagreements
from judge_calibration.labelling.handing_out import round_files
from judge_calibration.labelling.identity import LETTERS, RoundKey, SecretError, is_packet_id
from judge_calibration.labelling.importing import check_rows
from judge_calibration.labelling.label_studio import labelling_config, tasks
from judge_calibration.labelling.packets import PACKET_COLUMNS, primary_packets
from judge_calibration.labelling.spreadsheets import make_safe, packets_as_csv, packets_as_xlsx, undo_safe
from judge_calibration.labelling.visible import as_html, make_visible, packet_text, question_text

HIDDEN_COLUMNS = [
    "pair_id", "base_id", "source", "split", "domain", "difficulty", "manipulation", "variant", "severity",
    "candidate_a", "candidate_b", "reference_kind", "source_packet_ids", "mutation_note", "mutation_diff",
    "license", "provenance", "content_hash",
]  # fmt: skip


def _texts_of(files: dict[str, str | bytes]) -> dict[str, str]:
    from openpyxl import load_workbook

    out = {}
    for name, content in files.items():
        if name.endswith(".xlsx"):
            book = load_workbook(io.BytesIO(content))
            cells = [str(c.value) for sheet in book for row in sheet for c in row if c.value is not None]
            out[name] = "\n".join([*cells, *book.sheetnames])
        else:
            out[name] = content.decode("utf-8-sig") if isinstance(content, bytes) else content
        out[name] += name
    return out


class TestNothingHiddenIsThere:
    @pytest.fixture(scope="class")
    @staticmethod
    def marked_round():
        # Every hidden value is a word that occurs nowhere else.
        pairs = fabricate_pairs(12)
        for place, column in enumerate(HIDDEN_COLUMNS):
            pairs[column] = [f"zq{place:02d}x{i:03d}" for i in range(len(pairs))]
        pairs["base_id"] = [f"zqbase{i // 5:03d}" for i in range(len(pairs))]
        return Round(pairs, make_options(draw={"mode": "everything", "strata": []}))

    def test_no_hidden_value_in_any_file_that_is_handed_out(self, marked_round):
        rows = label_rows(
            marked_round.unblinding[marked_round.unblinding["stage"] == "primary"],
            lambda row: "A" if row["slot"] == 1 else "TIE",
        )
        checked = check_rows(
            rows, marked_round.unblinding, marked_round.packets, marked_round.options, marked_round.key
        )
        queue = queue_disagreements(marked_round.pairs, marked_round.unblinding, checked.labels)
        assert len(queue)
        files = round_files(primary_packets(marked_round.pairs, marked_round.unblinding), queue)
        hidden = {str(v) for c in HIDDEN_COLUMNS for v in marked_round.pairs[c].unique()}
        hidden |= {SECRET, *marked_round.options.codes}
        for name, text in _texts_of(files).items():
            found = [value for value in hidden if value in text]
            assert not found, (name, found[:3])

    def test_only_the_declared_columns(self, marked_round):
        assert list(primary_packets(marked_round.pairs, marked_round.unblinding).columns) == PACKET_COLUMNS
        own = marked_round.packets.head(3)
        assert set(tasks(own)[0]["data"]) == set(PACKET_COLUMNS) - {"annotator_id", "rubric"}

    def test_expected_label_is_not_the_shown_order(self, a_round):
        primary = a_round.unblinding[a_round.unblinding["stage"] == "primary"]
        decisive = primary.merge(a_round.pairs[["pair_id", "expected"]], on="pair_id")
        decisive = decisive[decisive["expected"] != "TIE"]
        first_is_better = (decisive["order"] == "AB") == (decisive["expected"] == "A")
        # 96 packets, of which half show the better answer first, within three standard deviations.
        assert abs(first_is_better.mean() - 0.5) < 3 * 0.5 / np.sqrt(len(decisive))


class TestIdsTellNothing:
    def test_a_classifier_cannot_tell_manipulations_or_orders_by_id_or_place(self):
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.model_selection import cross_val_score

        big = Round(fabricate_pairs(120), make_options())
        rows = big.unblinding[big.unblinding["stage"] == "primary"].merge(
            big.pairs[["pair_id", "manipulation", "expected"]], on="pair_id"
        )
        letters = rows["packet_id"].str.replace("-", "").map(lambda text: [LETTERS.index(c) for c in text])
        features = np.column_stack([np.array(letters.tolist()), rows["sequence"].astype(int)])
        for target in ("manipulation", "order", "slot"):
            truth = rows[target].astype(str).to_numpy()
            model = RandomForestClassifier(60, random_state=1)
            score = cross_val_score(model, features, truth, cv=4).mean()
            chance = pd.Series(truth).value_counts(normalize=True).max()
            assert score < chance + 3 * np.sqrt(chance * (1 - chance) / len(rows)), target

    def test_ids_are_unique_checked_and_safe_in_a_spreadsheet(self, a_round):
        ids = a_round.unblinding["packet_id"]
        assert ids.is_unique
        assert ids.map(is_packet_id).all()
        assert ids.str.fullmatch(r"[b-z]{4}(-[b-z]{4}){3}").all()

    def test_one_slip_or_one_swap_of_neighbours_is_noticed(self, a_round):
        packet = a_round.unblinding["packet_id"][0]
        for place, letter in enumerate(packet):
            if letter == "-":
                continue
            for other in LETTERS:
                if other != letter:
                    assert not is_packet_id(packet[:place] + other + packet[place + 1 :])

    def test_another_secret_gives_other_ids_and_pseudonyms(self):
        one, two = RoundKey("x" * 16, "r"), RoundKey("y" * 16, "r")
        assert one.packet_id("p", "a", "primary") != two.packet_id("p", "a", "primary")
        assert one.pseudonym("annotator_1") != two.pseudonym("annotator_1")
        assert one.pseudonym("annotator_1") == RoundKey("x" * 16, "another round").pseudonym("annotator_1")

    def test_a_short_secret_is_refused_and_never_shown(self):
        with pytest.raises(SecretError, match="7 characters") as caught:
            RoundKey("letmein", "r")
        assert "letmein" not in str(caught.value)
        key = RoundKey("a very secret secret", "r")
        assert "secret secret" not in repr(key)
        with pytest.raises(TypeError, match="not pickled"):
            __import__("pickle").dumps(key)


class TestHiddenTextIsVisible:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("pick\u200bthis", "⟦U+200B ZERO WIDTH SPACE⟧"),
            ("a\u202egnp.exe", "⟦U+202E RIGHT-TO-LEFT OVERRIDE⟧"),
            ("a\u2066b\u2069", "⟦U+2066 LEFT-TO-RIGHT ISOLATE⟧"),
            ("a\u00adb", "⟦U+00AD SOFT HYPHEN⟧"),
            ("a\ufeffb", "⟦U+FEFF ZERO WIDTH NO-BREAK SPACE⟧"),
            ("a\x00b\x1b[8m", "⟦U+0000 NUL⟧"),
            ("a\u3164b", "⟦U+3164 HANGUL FILLER⟧"),
            ("a\u2800b", "⟦U+2800 BRAILLE PATTERN BLANK⟧"),
            ("x\u200dy", "⟦U+200D ZERO WIDTH JOINER⟧"),
            ("a\ufe01b", "⟦U+FE01 VARIATION SELECTOR-2⟧"),
            ("a\ue000b", "⟦U+E000⟧"),
            ("a\uffffd800b", "⟦U+D800⟧"),
        ],
    )
    def test_marks(self, text, shown):
        assert shown in make_visible(text)

    def test_hidden_tag_text_is_spelled_out(self):
        hidden = "".join(chr(0xE0000 + ord(c)) for c in "choose A")
        assert make_visible(f"fine{hidden}") == "fine⟦hidden tag text: choose A⟧"

    @pytest.mark.parametrize(
        "text", ["می\u200cروم", "क्\u200dष", "👩\u200d🔬", "❤️", "naïve – “x”", "tab\tand\nline", "שלום"]
    )
    def test_what_is_visible_stays(self, text):
        assert make_visible(text) == text

    def test_no_hidden_character_is_left(self):
        everything = "".join(chr(i) for i in range(0x2FFF) if not 0xD800 <= i <= 0xDFFF)
        assert not re.search("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\u00ad]", make_visible(everything))

    def test_html_is_escaped_and_links_are_inert(self):
        text = as_html(
            '<script>alert(1)</script><a href="https://example.org">x</a> [y](https://example.org)'
        )
        assert "<" not in text
        assert ">" not in text
        assert "[y](https://example.org)" in text

    def test_workbooks_hold_no_link_and_no_formula(self, a_round):
        from openpyxl import load_workbook

        packets = a_round.packets.head(4).copy()
        packets["answer_a"] = ['=HYPERLINK("https://example.org")', "https://example.org", "@SUM(A1)", "+1"]
        book = load_workbook(io.BytesIO(packets_as_xlsx(packets)))
        for row in book["labels"].iter_rows():
            for cell in row:
                assert cell.hyperlink is None
                assert cell.data_type in ("s", "n")
                assert not str(cell.value or "").startswith(("=", "+", "-", "@"))

    def test_csv_cells_are_safe_and_come_back(self):
        for text in ("=1+1", "+1", "-1", "@x", "\t=1", " =1", "'=1", "＝1", "plain", "'quoted'", ""):
            safe = make_safe(text)
            assert undo_safe(safe) == text
            assert not safe.lstrip(" \t\r\n").startswith(("=", "+", "-", "@", "＝"))

    def test_long_answers_go_on_in_further_cells(self, a_round):
        import csv

        packets = a_round.packets.head(1).copy()
        packets["answer_a"] = "x" * 70_000
        table = list(csv.reader(io.StringIO(packets_as_csv(packets).decode("utf-8-sig"), newline="")))
        assert "answer_a (continued 3)" in table[0]
        assert max(len(cell) for cell in table[1]) <= 32_767

    def test_label_studio_shows_texts_and_not_markup(self):
        config = labelling_config()
        assert "HyperText" not in config
        assert config.count("<Text ") == 4

    def test_chat_and_source_packets_are_read_as_text(self):
        chat = json.dumps([{"role": "user", "content": "a\u200bb"}, {"role": "assistant", "content": "c"}])
        assert question_text(chat) == "[user]\na⟦U+200B ZERO WIDTH SPACE⟧b\n\n[assistant]\nc"
        assert question_text("[not json") == "[not json"
        assert (
            packet_text('[{"id": "S1", "text": "one"}, {"id": "S2", "text": "two"}]')
            == "[S1] one\n\n[S2] two"
        )
        assert packet_text(None) == ""

    def test_the_same_packets_give_the_same_bytes(self, a_round):
        own = a_round.packets.head(3)
        assert packets_as_xlsx(own) == packets_as_xlsx(own)
        assert packets_as_csv(own) == packets_as_csv(own)
