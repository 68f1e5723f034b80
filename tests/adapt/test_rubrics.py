import pytest

from judge_calibration.adapt.rubrics import (
    Rubric,
    named_attributes,
    rubric_diagnostics,
    shortened,
    write_from_weights,
)
from judge_calibration.options.judging import JudgeSpec

ATTRIBUTES = ("depth", "detail_level", "level", "conciseness", "tone")


def rubric(text, **fields):
    return Rubric(
        **{"judge_id": "j", "source": "s", "budget": "full", "resample": 0, "writer": "w", "text": text}
        | {"n_train": 10}
        | fields
    )


class TestNames:
    def test_an_ordinary_source_stays_as_it_is(self):
        for source in ("pair_bank", "LLMBar", "SIMULATED-longer-answer"):
            one = rubric("t", source=source)
            assert one.name == one.file_name == f"j+rubric-{source}-full"
        assert rubric("t", budget="32", resample=2).name == "j+rubric-s-32-resample2"

    def test_sources_that_differ_in_odd_characters_only(self):
        ones = [rubric("t", source=source) for source in ("a b", "a_b", "a/b", "a  b")]
        assert len({one.name for one in ones}) == len({one.file_name for one in ones}) == 4

    def test_long_names_end_with_what_tells_them_apart(self):
        long = "s" * 130
        names = [
            rubric("t", source=source, budget=budget, judge_id=judge).name
            for source in (long, long + "x")
            for budget in ("32", "full")
            for judge in ("j" * 120, "j" * 119 + "k")
        ]
        assert len(set(names)) == 8
        for name in names:
            # A judge of that name can be made.
            JudgeSpec.model_validate({"judge_id": name, "model": "m", "protocols": ["direct"]})

    def test_a_file_has_no_folder_in_its_name(self):
        names = {rubric("t", judge_id=judge).file_name for judge in ("a/b", "a_b", "a:b")}
        assert len(names) == 3
        assert not any(set("/:") & set(name) for name in names)


class TestWriting:
    def test_the_largest_weights_come_first_with_their_direction(self):
        text = write_from_weights(
            {"depth": 0.2, "conciseness": -0.9, "tone": 0.5}, {"tone": "How it sounds."}, 2
        )
        lines = text.splitlines()[1:3]
        assert lines == ["1. Less conciseness is better.", "2. More tone is better. Tone: How it sounds."]

    def test_no_weight_gives_no_text(self):
        assert write_from_weights({"depth": 0.0}, {}) == ""

    def test_equal_weights_are_ordered_by_name_so_that_the_text_repeats(self):
        assert write_from_weights({"b": 1.0, "a": 1.0}, {}) == write_from_weights({"a": 1.0, "b": 1.0}, {})

    def test_texts_are_cut_with_a_mark(self):
        assert shortened("one two", 2) == ("one two", False)
        assert shortened("one  two\nthree", 2) == ("one two [...]", True)


class TestNaming:
    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("Prefer more depth.", [("depth", 1)]),
            ("Avoid conciseness; reward tone.", [("conciseness", -1), ("tone", 1)]),
            ("Detail-level matters.", [("detail_level", 0)]),
            ("The in-depth monotone atonement.", []),
            ("", []),
        ],
    )
    def test_names_and_directions(self, text, wanted):
        assert named_attributes(text, ATTRIBUTES) == wanted

    def test_what_was_written_from_weights_is_read_back(self):
        weights = {"depth": 0.9, "conciseness": -0.5, "detail_level": 0.3}
        text = write_from_weights(weights, {})
        assert named_attributes(text, ATTRIBUTES) == [("depth", 1), ("conciseness", -1), ("detail_level", 1)]


class TestDiagnostics:
    weights = {("j", "s", "full", 0): {"depth": 2.0, "conciseness": -1.0, "tone": 0.5, "level": 0.1}}

    def test_a_rubric_from_the_weights_agrees_with_them(self):
        text = write_from_weights(self.weights["j", "s", "full", 0], {}, 3)
        row = rubric_diagnostics([rubric(text)], self.weights, ATTRIBUTES).iloc[0]
        assert (row["share_of_strongest"], row["same_direction"], row["rank_agreement"]) == (1.0, 1.0, 1.0)
        assert row["named"] == "depth, conciseness, tone"

    def test_a_rubric_against_the_weights_does_not(self):
        text = "Reward more level. Then more tone. Then less depth."
        row = rubric_diagnostics([rubric(text)], self.weights, ATTRIBUTES).iloc[0]
        # Of the three strongest (depth, conciseness, tone) two are named; depth has the wrong direction.
        assert row["share_of_strongest"] == pytest.approx(2 / 3)
        assert row["same_direction"] == pytest.approx(2 / 3)
        assert row["rank_agreement"] == -1.0

    def test_without_weights_only_the_text_is_described(self):
        row = rubric_diagnostics([rubric("More depth.")], {}, ATTRIBUTES).iloc[0]
        assert not row["weights_known"]
        assert row["words"] == 2
        assert row[["share_of_strongest", "same_direction", "rank_agreement"]].isna().all()
