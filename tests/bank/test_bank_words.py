"""Counting words, numbers and names."""

import pytest

from judge_calibration.bank import words
from judge_calibration.bank.privacy import private_things
from judge_calibration.bank.proofs import agrees


class TestNumbers:
    @pytest.mark.parametrize(
        ("written", "wanted"),
        [
            ("1,250", "1250"),
            ("1.250.000", "1250000"),
            ("3.50", "3.5"),
            ("1.234,50", "1234.5"),
            ("0.05", "0.05"),
        ],
    )
    def test_ways_of_writing(self, written: str, wanted: str) -> None:
        assert words.canonical_number(written) == wanted

    def test_digits_of_other_scripts_and_words(self) -> None:
        assert words.numbers("٣ أيام و ثلاثة", "ar") == {"3": 1, "ثلاثة": 1}
        assert words.numbers("三天后有12个人", "zh") == {"三": 1, "12": 1}
        assert words.numbers("Two of them, and one more [P3].") == {"two": 1}


class TestNames:
    def test_first_words_and_german_nouns_are_no_names(self) -> None:
        assert set(words.names("Then Alba met the mayor. Later it rained on Alba's roof.")) == {"Alba"}
        assert not words.names("Dann traf sie den Bürgermeister.", "de")


class TestPrivateThings:
    @pytest.mark.parametrize(
        "text",
        [
            "call +49 30 555 0199",
            "from 192.168.1.10",
            "card 4111 1111 1111 1111",
            "DE89 3704 0044 0532 0130 00",
            "key AKIAIOSFODNN7EXAMPLE",
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "password: hunter22",
            "https://example.net",
        ],
    )
    def test_found(self, text: str) -> None:
        assert private_things(text)

    @pytest.mark.parametrize(
        "text",
        ["12000 + 300 = 12300", "from 9:10 to 11:45", "1.234.567", "between 10-20 and 30-40 units", "P1, P2"],
    )
    def test_ordinary_numbers_are_not(self, text: str) -> None:
        assert not private_things(text)


class TestAgrees:
    @pytest.mark.parametrize(
        ("result", "printed"),
        [
            (7.8, "7.8% salt"),
            (1234.5, "1,234.50"),
            (1 / 3, "about 0.33"),
            (0.125, "0.13"),
            (-4, "−4 degrees"),
            (0.375, "3/8 of it"),
            ("Dana", "dana"),
            (12, "١٢"),
        ],
    )
    def test_at_the_printed_precision(self, result: object, printed: str) -> None:
        assert agrees(result, printed)

    @pytest.mark.parametrize(
        ("result", "printed"), [(7.8, "7.9"), (True, "1"), (None, "0"), ("Bo", "Bo sits"), (3, "x")]
    )
    def test_what_does_not(self, result: object, printed: str) -> None:
        assert not agrees(result, printed)

    def test_value_beside_the_text(self) -> None:
        assert agrees(9.5, "9:30", 9.5)
        assert agrees([1, 2], "one and two", [1, 2])
        assert not agrees([1, 2], "one and two", [1, 3])
