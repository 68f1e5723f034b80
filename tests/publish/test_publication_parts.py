"""The parts of publishing: detectors, texts, licences, reviews, the private sentinel."""

import json
import random
import string
from pathlib import Path

import pandas as pd
import pytest

from judge_calibration.errors import OptionsError
from judge_calibration.publish.croissant import describe
from judge_calibration.publish.detectors import find_personal, find_secrets
from judge_calibration.publish.licences import joined, known_licence
from judge_calibration.publish.review import proposed_review, read_review
from judge_calibration.publish.sentinel import find_private
from judge_calibration.publish.texts import Text, texts_of
from judge_calibration.runs.files import sha256_of_file


def drawn(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    """Letters that no rule takes for an example; drawn here, so that no file holds what looks like a key."""
    generator = random.Random(20261130)
    return "".join(generator.choice(letters) for _ in range(length))


class TestPersonalData:
    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("Write to jo.smith@example.org today.", "an e-mail address"),
            ("Call +49 30 1234567 after six.", "a telephone number"),
            ("Her number is 123-45-6789.", "a social security number"),
            ("Pay with 4111 1111 1111 1111.", "a card number"),
            ("The server is 192.168.0.12 now.", "an IP address"),
            ("IBAN DE89 3704 0044 0532 0130 00", "an account number"),
            ("password: correct-horse", "a password"),
            ("see /home/anna/runs/x", "a path of this machine"),
        ],
    )
    def test_it_is_found_with_its_place(self, text: str, what: str) -> None:
        found = list(find_personal([Text("a.csv, row 2", text)], ["/home/anna"]))
        assert [finding.what.startswith(what) for finding in found] == [True]
        assert found[0].where == "a.csv, row 2"

    @pytest.mark.parametrize(
        "text",
        [
            "In 2026 there were 4155551234 of them, 0.4155551234 each.",
            "openblas 0.3.31.188.0 SkylakeX",
            "a76f0441111111111111111b3c",
            "0.4111111111111111 and 3.5",
            "It took 317.2254375 ms.",
            "On 2026-11-30, 02139 people came.",
            "4111 1111 1111 1112 is no card number",
        ],
    )
    def test_numbers_are_no_people(self, text: str) -> None:
        assert list(find_personal([Text("x", text)])) == []

    def test_one_text_is_told_once_and_its_id_depends_on_nothing_else(self) -> None:
        texts = [Text("a", "jo@example.org"), Text("b", "write to jo@example.org")]
        (found,) = find_personal(texts)
        (again,) = find_personal(texts[1:])
        assert (found.where, found.id) == ("a", again.id)


class TestSecrets:
    def test_keys_of_services_are_found_and_not_shown(self) -> None:
        key = f"hf_{drawn(34, string.ascii_letters)}"
        texts = [
            Text("b.yml", "nothing\nhere"),
            Text("c.yml, line 3", f"the key is\n{key} so"),
            Text("d", "x"),
        ]
        (found,) = find_secrets(texts)
        assert (found.kind, found.where, found.text) == ("secret", "c.yml, line 3", key)
        assert key not in found.shown

    def test_plain_text_has_none(self) -> None:
        assert list(find_secrets([Text("x", "Answer A is better.")])) == []


class TestTexts:
    def test_numbers_are_left_out_and_json_is_opened(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        frame = pd.DataFrame({"n": [4155551234], "s": ['{"seed": 4155551234, "text": "hello"}'], "t": [None]})
        frame.astype({"t": "str"}).to_parquet(path)
        assert {text.text for text in texts_of(path, "t")} == {"seed", "text", "hello"}

    def test_scripts_of_a_page_are_left_out(self, tmp_path: Path) -> None:
        path = tmp_path / "p.html"
        path.write_text("<p>Dear &amp; near</p><script>var a = 'jo@example.org'</script>")
        assert [text.text for text in texts_of(path, "p")] == ["Dear & near"]

    def test_rows_and_lines_are_named(self, tmp_path: Path) -> None:
        table, lines = tmp_path / "t.csv", tmp_path / "l.jsonl"
        table.write_text("a,b\nx,1\ny,z\n")
        lines.write_text('{"q": "one"}\n{"q": "two"}\n')
        places = {text.text: text.where for text in (*texts_of(table, "t"), *texts_of(lines, "l"))}
        assert places["z"] == "t, row 3, column b"
        assert places["two"] == "l, line 2"


class TestLicences:
    @pytest.mark.parametrize("text", [None, "", "own", "unknown", "other", "proprietary", float("nan")])
    def test_what_tells_others_nothing_is_unknown(self, text: object) -> None:
        assert known_licence(text) is None

    def test_alternatives_stay_together(self) -> None:
        assert joined(["MIT OR Apache-2.0", "MIT"]) == "(MIT OR Apache-2.0) AND MIT"


class TestReview:
    def test_every_fault_is_told_with_a_suggestion(self, tmp_path: Path) -> None:
        path = tmp_path / "review.yml"
        path.write_text("reviewed_bye: me\nlicences:\n  - {path: a.csv, licence: mine, reason: it is ours}\n")
        with pytest.raises(OptionsError) as told:
            read_review(path)
        assert "did you mean 'reviewed_by'" in str(told.value)
        assert "no SPDX licence" in str(told.value)

    def test_a_proposed_form_is_refused_until_a_person_has_filled_it_in(self, tmp_path: Path) -> None:
        (finding,) = find_personal([Text("a.csv, row 2", "jo@example.org")])
        path = tmp_path / "review.yml"
        path.write_text(proposed_review([finding], []))
        with pytest.raises(OptionsError, match="reason"):
            read_review(path)
        text = path.read_text().replace("reason: ''", "reason: an invented address")
        path.write_text(text.replace("reviewed_by: ''", "reviewed_by: the editors"))
        assert read_review(path).findings[0].id == finding.id


class TestPrivateSentinel:
    def test_a_private_text_is_found_inside_another_and_however_it_is_wrapped(self) -> None:
        known = {"the answer that nobody outside may ever read": "private sentinel p"}
        texts = [Text("b.csv, row 7", "So: the answer that nobody\n outside  may ever read. Yes.")]
        (found,) = find_private(texts, known)
        assert (found.kind, found.where) == ("private sentinel", "b.csv, row 7")


class TestCroissant:
    def test_the_validator_accepts_the_description(self, tmp_path: Path) -> None:
        import mlcroissant

        pd.DataFrame({"pair_id": ["p"], "C": [0.5], "n": [1], "ok": [True]}).to_parquet(
            tmp_path / "t.parquet"
        )
        (tmp_path / "README.md").write_text("# card\n")
        digests = {name: sha256_of_file(tmp_path / name) for name in ("t.parquet", "README.md")}
        about = {
            "name": "a-run", "description": "d", "version": "1.0.0", "date": "2026-11-30",
            "creator": "us", "collection": "c", "personal": "none",
        }  # fmt: skip
        described = describe(tmp_path, digests, {"trust_table": "t.parquet"}, ["CC-BY-4.0 AND MIT"], about)
        path = tmp_path / "croissant.json"
        path.write_text(json.dumps(described))
        dataset = mlcroissant.Dataset(jsonld=str(path))
        assert [record["trust_table/C"] for record in dataset.records("trust_table")] == [0.5]
        assert not dataset.metadata.ctx.issues.errors
        assert not dataset.metadata.ctx.issues.warnings
