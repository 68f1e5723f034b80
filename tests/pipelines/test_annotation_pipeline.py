"""The pipeline `annotation` on fabricated pairs, without a disk."""

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "labelling"))

from labelling_helpers import fabricate_pairs, make_options

from judge_calibration import schemas
from judge_calibration.errors import OptionsError
from judge_calibration.labelling.identity import RoundKey
from judge_calibration.labelling.planning import KEY_COLUMNS
from judge_calibration.metrics.agreement import agreement_table
from judge_calibration.options.data_prep import DataPrepOptions
from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.pipelines.annotation.pipeline import create_pipeline
from judge_calibration.pipelines.data_prep.nodes import hide_annotators, import_files


def run(options, pairs, secret="", imported=None) -> dict[str, object]:
    """Run every node in order and keep all that it makes."""
    data: dict[str, object] = {
        "pairs": pairs,
        "imported_labels": schemas.empty(schemas.LABELS) if imported is None else imported,
        "logged_verdicts": schemas.empty(schemas.VERDICT_ROWS),
        "annotation_secret": secret,
        "params:annotation": options,
    }
    for node in create_pipeline().nodes:
        data |= node.run({name: data[name] for name in node.inputs})
    return {
        name: made for name, made in data.items() if name not in ("annotation_secret", "params:annotation")
    }


@pytest.fixture(scope="module")
def fresh():
    return run(make_options(), fabricate_pairs(9))


class TestAnnotationPipeline:
    def test_a_fresh_round_has_packets_no_labels_and_everything_to_do(self, fresh):
        assert len(fresh["blinded_packets"]) == 9 * 5 * 2
        assert fresh["labels"].empty
        progress = fresh["label_progress"].set_index(["scope", "stage"]).loc[("all", "primary")]
        assert (int(progress["assigned"]), int(progress["labelled"])) == (90, 0)
        assert fresh["adjudication_queue"].empty
        assert set(fresh["adjudicated_labels"]["undefined"]) == {"no_label"}
        assert list(fresh["unblinding_key"].columns) == KEY_COLUMNS

    def test_practice_key_is_named_in_the_plan(self, fresh):
        assert set(fresh["annotation_plan"]["key_kind"]) == {"practice"}

    def test_the_secret_changes_ids_and_reaches_no_artifact(self, fresh):
        secret = "correct horse battery staple"
        out = run(make_options(), fabricate_pairs(9), secret)
        assert set(out["unblinding_key"]["packet_id"]).isdisjoint(fresh["unblinding_key"]["packet_id"])
        assert set(out["annotation_plan"]["key_kind"]) == {"secret"}
        for name, data in out.items():
            text = data.to_csv() if isinstance(data, pd.DataFrame) else repr(data)
            assert secret not in text, name

    def test_half_of_the_labels_and_the_queue(self, tmp_path, fresh):
        # The first annotator of a pair says A is better, the second that it is a tie; two pairs are open.
        key = fresh["unblinding_key"]
        primary = key[key["stage"] == "primary"].sort_values(["pair_id", "slot"])
        rows = []
        for row in primary.to_dict("records"):
            label = ("A" if row["order"] == "AB" else "B") if row["slot"] == 1 else "TIE"
            rows.append(f"{row['packet_id']},{label},2026-03-01T00:00:00Z")
        sheet = tmp_path / "labels.csv"
        sheet.write_text("\n".join(["packet_id,label,labelled_at", *rows[:-4]]))
        out = run(make_options(labels={"files": [{"path": str(sheet)}]}), fabricate_pairs(9))
        schemas.check(out["labels"], schemas.LABELS)
        assert len(out["labels"]) == 86
        assert out["label_files"][["file", "made_by", "rows"]].to_numpy().tolist() == [
            ["labels.csv", "human", 86]
        ]
        assert len(out["adjudication_queue"]) == 43
        settled = out["adjudicated_labels"].groupby("undefined").size()
        assert settled["adjudication_missing"] == 43
        assert settled["no_label"] == 2
        packets = pd.concat([out["adjudication_queue"], out["blinded_packets"]])
        assert packets["packet_id"].is_unique

    def test_what_a_model_made_is_not_among_the_labels_of_people(self, tmp_path, fresh):
        packet = fresh["blinded_packets"]["packet_id"][0]
        sheet = tmp_path / "model.csv"
        sheet.write_text(f"packet_id,label\n{packet},TIE\n")
        out = run(make_options(labels={"files": [{"path": str(sheet), "made_by": "ai"}]}), fabricate_pairs(9))
        assert out["labels"].empty
        assert list(out["ai_labels"]["kind"]) == ["ai"]
        assert out["human_agreement"].empty

    def test_no_pairs_at_all(self):
        out = run(make_options(), schemas.empty(schemas.PAIRS))
        assert out["blinded_packets"].empty
        assert out["label_progress"].empty


def _imported(said, kind="human"):
    """Return labels of other people: {pair: {annotator: label}}."""
    rows = [
        {"pair_id": pair, "annotator_id": who, "label": label, "stage": "primary", "kind": kind}
        for pair, labels in said.items()
        for who, label in labels.items()
    ]
    return schemas.check(schemas.conform(pd.DataFrame(rows), schemas.LABELS), schemas.LABELS)


class TestOtherPeoplesLabels:
    """Labels of files have annotators of their own, and nothing to do with who was assigned what."""

    PAIRS = fabricate_pairs(9)
    SAID = {
        "bank-0000-citation": {"ann_x": "A", "ann_y": "B", "ann_z": "B"},
        "bank-0001-citation": {"ann_x": "A", "ann_y": "A", "ann_z": "A"},
    }
    ONE_PAIR = {"draw": {"mode": "pairs", "pairs": 1, "sources": ["drawn"]}}

    @pytest.fixture(scope="class")
    @classmethod
    def made(cls):
        pairs = cls.PAIRS.assign(source="bank")
        pairs.loc[pairs["pair_id"] == "bank-0005-style", "source"] = "drawn"
        return run(make_options(**cls.ONE_PAIR), pairs, imported=_imported(cls.SAID))

    def test_they_stand_among_the_labels_without_a_round(self, made):
        labels = made["labels"]
        assert len(labels) == 6
        assert labels["round_id"].isna().all()
        assert set(labels["kind"]) == {"human"}

    def test_they_feed_agreement_ceiling_model_and_settled_labels(self, made):
        agreement = made["human_agreement"].set_index(["slice_by", "annotators", "labels"])["value"]
        assert agreement["all", "all", "all"] == 4 / 6
        assert agreement["all", "ann_x | ann_y", "all"] == 1 / 2
        ceiling = made["human_ceiling"]
        assert ceiling.loc[ceiling["slice_by"] == "all", "value"].iloc[0] == 4 / 6
        assert set(made["likely_labels"]["pair_id"]) == set(self.SAID)
        settled = made["adjudicated_labels"].set_index("pair_id")
        assert settled.loc["bank-0001-citation", "rule"] == "agreed"
        assert settled.loc["bank-0000-citation", "undefined"] == "adjudication_missing"

    def test_they_neither_fill_nor_disturb_the_own_round(self, made):
        progress = made["label_progress"].set_index(["scope", "stage"])
        assert progress.loc[("all", "primary"), "labelled"] == 0
        assert ("all", "adjudication") not in progress.index
        assert made["adjudication_queue"].empty

    def test_a_planned_pair_is_settled_by_its_own_round_alone(self):
        said = {"bank-0005-style": {"ann_x": "A", "ann_y": "B"}}
        out = run(make_options(), self.PAIRS, imported=_imported(said))
        assert out["adjudication_queue"].empty
        assert set(out["adjudicated_labels"]["undefined"]) == {"no_label"}
        assert len(out["labels"]) == 2

    def test_those_that_a_model_made_go_to_the_models(self):
        out = run(make_options(), self.PAIRS, imported=_imported(self.SAID, kind="ai"))
        assert out["labels"].empty
        assert len(out["ai_labels"]) == 6

    def test_people_beside_a_simulated_panel_are_refused(self):
        simulation = {"enabled": True, "annotators": [{"code": "annotator_1"}]}
        with pytest.raises(OptionsError, match="label_files"):
            run(make_options(simulation=simulation), self.PAIRS, imported=_imported(self.SAID))


class TestMtBench:
    """Votes of strangers on public pairs, through the same nodes as an own round."""

    @pytest.fixture(scope="class")
    @staticmethod
    def made(public_data):
        items = str(public_data / "mtbench" / "items.parquet")
        files = import_files(
            DataPrepOptions(
                use_bank=False,
                pair_files=[{"path": items, "layout": "mtbench_items"}],
                label_files=[{"path": items, "layout": "mtbench_votes"}],
            )
        )
        pairs = files.imported_pairs.assign(split="train")
        imported = hide_annotators(files.imported_labels, pairs, "")
        options = make_options(
            draw={"mode": "pairs", "pairs": 20, "strata": ["domain"]},
            analysis={"bootstrap": 200, "slice_by": ["domain"]},
        )
        return run(options, pairs, imported=imported)

    def test_agreement_of_the_voters(self, made):
        assert len(made["labels"]) == 3354
        assert made["labels"]["annotator_id"].nunique() == 65
        rows = made["human_agreement"]
        whole = rows[(rows["slice_by"] == "all") & (rows["annotators"] == "all")].set_index("labels")
        assert whole.loc["all", "alpha"] == pytest.approx(0.4849, abs=5e-5)
        assert (whole.loc["decisive", "n"], round(whole.loc["decisive", "value"], 4)) == (1550, 0.8271)
        # One vote less than in the published 2,368 comparisons: a repeated vote counts once.
        assert (whole.loc["all", "n"], round(whole.loc["all", "value"], 4)) == (2367, 0.6553)

    def test_they_feed_the_ceiling_and_the_model_of_errors(self, made):
        ceiling = made["human_ceiling"]
        assert set(ceiling["comparison"]) == {
            "annotator_annotator",
            "annotator_adjudicated",
            "annotator_dawid_skene",
        }
        assert len(made["likely_labels"]) == 1814
        assert made["annotator_errors"]["annotator_id"].nunique() == 65

    def test_the_own_round_is_not_theirs(self, made):
        progress = made["label_progress"]
        assert int(progress.loc[progress["scope"] == "all", "labelled"].sum()) == 0
        assert made["adjudication_queue"].empty

    def test_judges_are_read_beside_them(self, made):
        pairs = made["pairs"]
        pairs = pairs[pairs["reference_label"].isin(["A", "B"])].head(200).reset_index(drop=True)
        labels = made["labels"][made["labels"]["pair_id"].isin(pairs["pair_id"])]
        verdicts = pd.concat(
            [
                pd.DataFrame(
                    {
                        "pair_id": pairs["pair_id"],
                        "judge_id": "majority",
                        "protocol": "direct",
                        "instrument_id": "i",
                        "constraint": "none",
                        "temperature": 0.0,
                        "order": order,
                        "repetition": 0,
                        "outcome": "valid",
                        "verdict": pairs["reference_label"],
                    }
                )
                for order in ("AB", "BA")
            ],
            ignore_index=True,
        )
        verdicts = schemas.conform(verdicts, schemas.VERDICT_ROWS)
        table = agreement_table(verdicts, pairs, labels, ReportingOptions(intervals={"resamples": 200}))
        raw = table[
            (table["statistic"] == "raw") & (table["slice_by"] == "all") & (table["view"] == "strict")
        ]
        kinds = {"human_human", "judge_human", "judge_adjudicated", "judge_dawid_skene", "judge_reference"}
        assert set(raw["comparison"]) == kinds
        pooled = raw[(raw["comparison"] == "judge_human") & (raw["against"] == "all annotators")].iloc[0]
        assert pooled["n_items"] == 2 * len(labels)
        assert pooled["value"] > pooled["ceiling"] > 0.5


def shown(row, identity):
    """Return the label by the answers as shown that means the candidate."""
    return {"A": "B", "B": "A"}.get(identity, identity) if row["order"] == "BA" else identity


class TestALeaverAndAThird:
    """The whole story of a round, by files as people send them."""

    PAIRS = fabricate_pairs(6)

    def sheet(self, folder, name, rows):
        lines = [f"{row['packet_id']},{shown(row, says)},{when}" for row, says, when in rows]
        (folder / name).write_text("\n".join(["packet_id,label,labelled_at", *lines]))
        return {"path": str(folder / name)}

    @pytest.fixture(scope="class")
    @classmethod
    def story(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("labels")
        plain = run(make_options(), cls.PAIRS)
        leaver = RoundKey(None, make_options().round_id).pseudonym("annotator_2")
        key = plain["unblinding_key"]
        first = key[key["stage"] == "primary"].sort_values(["annotator_id", "sequence"])
        own = first[first["annotator_id"] == leaver]
        done = set(own["packet_id"].head(5))
        # All see A as better, but for pairs on style, where the second label of a pair is a tie.
        early = [
            (row, cls.says(row), "2026-03-01T00:00:00Z")
            for row in first.to_dict("records")
            if row["annotator_id"] != leaver or row["packet_id"] in done
        ]
        self = cls()
        files = [self.sheet(folder, "early.csv", early)]
        leaving = {"hand_overs": [{"annotator": "annotator_2", "at": "2026-03-02T00:00:00Z"}]}
        left = run(make_options(**leaving, labels={"files": files}), cls.PAIRS)
        known = left["unblinding_key"]
        new = known[~known["packet_id"].isin(key["packet_id"]) & (known["stage"] == "primary")]
        late = [(row, cls.says(row), "2026-03-05T00:00:00Z") for row in new.to_dict("records")]
        files.append(self.sheet(folder, "late.csv", late))
        full = run(make_options(**leaving, labels={"files": files}), cls.PAIRS)
        waiting = known[known["packet_id"].isin(full["adjudication_queue"]["packet_id"])]
        third = [(row, "B", "2026-03-09T00:00:00Z") for row in waiting.to_dict("records")]
        files.append(self.sheet(folder, "third.csv", third))
        settled = run(make_options(**leaving, labels={"files": files}), cls.PAIRS)
        return {
            "leaver": leaver,
            "done": done,
            "plain": plain,
            "left": left,
            "full": full,
            "settled": settled,
        }

    @staticmethod
    def says(row):
        return "TIE" if row["pair_id"].endswith("style") and row["slot"] == 2 else "A"

    def test_what_the_leaver_had_not_labelled_goes_to_others(self, story):
        key = story["left"]["unblinding_key"]
        own = key[(key["annotator_id"] == story["leaver"]) & (key["stage"] == "primary")]
        assert set(own.loc[own["status"] == "issued", "packet_id"]) == story["done"]
        taken = own[own["status"] == "handed_over"]
        assert len(taken) == 10
        assert not set(taken["packet_id"]) & set(story["left"]["blinded_packets"]["packet_id"])
        plan = story["left"]["annotation_plan"]
        moved = plan[(plan["replaces"] == story["leaver"]) & (plan["stage"] == "primary")]
        assert set(moved["pair_id"]) == set(taken["pair_id"])
        assert story["leaver"] not in set(moved["annotator_id"])

    def test_labels_that_were_given_stay_and_nobody_labels_a_pair_twice(self, story):
        labels = story["settled"]["labels"]
        assert (labels["annotator_id"] == story["leaver"]).sum() == 5
        assert not labels.duplicated(["pair_id", "annotator_id"]).any()

    def test_the_third_label_settles_what_the_first_two_did_not(self, story):
        assert len(story["full"]["adjudication_queue"]) == 6
        undefined = story["full"]["adjudicated_labels"]["undefined"].dropna()
        assert set(undefined) == {"adjudication_missing"}
        settled = story["settled"]["adjudicated_labels"].set_index("pair_id")
        disputed = settled[settled.index.str.endswith("style")]
        assert set(disputed["rule"]) == {"third_decides"}
        assert set(disputed["label"]) == {"B"}
        assert set(settled.loc[~settled.index.str.endswith("style"), "rule"]) == {"agreed"}
        assert story["settled"]["adjudication_queue"].empty
        thirds = story["settled"]["labels"].query("stage == 'adjudication'")
        primaries = story["settled"]["labels"].query("stage == 'primary'")
        both = thirds.merge(primaries, on=["pair_id", "annotator_id"])
        assert (len(thirds), len(both)) == (6, 0)


class TestAStudyBesideTheDraw:
    PAIRS = fabricate_pairs(12)
    CASES = ("bank-0001-citation", "bank-0002-style", "bank-0003-length")

    @pytest.fixture(scope="class")
    @classmethod
    def made(cls, tmp_path_factory):
        file = tmp_path_factory.mktemp("study") / "cases.csv"
        rows = [f"{pair},{'control' if i == 2 else 'witness'},4,{2 * i}" for i, pair in enumerate(cls.CASES)]
        file.write_text("\n".join(["pair_id,role,judges_a,judges_b", *rows]))
        study = {"enabled": True, "beside_draw": True, "cases_file": str(file)}
        options = make_options(
            study=study | {"attributes": {"clarity": "Which is clearer?", "support": "Which is supported?"}},
            simulation={
                "enabled": True,
                "share_adjudicated": 0.5,
                "annotators": [{"code": f"annotator_{i}", "skill": 0.6} for i in range(1, 5)],
            },
            analysis={"bootstrap": 200},
        )
        return run(options, cls.PAIRS)

    def test_cases_come_as_they_were_chosen(self, made):
        cases = made["study_cases"]
        assert cases["pair_id"].tolist() == list(self.CASES)
        assert cases["minority_share"].tolist() == [0, 2 / 6, 4 / 8]

    def test_the_draw_is_labelled_too_and_has_its_chances(self, made):
        assert set(made["annotation_plan"]["pair_id"]) == set(self.PAIRS["pair_id"])
        frame = made["labelling_frame"]
        assert frame["undefined"].isna().all()
        assert (frame["inclusion_probability"] == 1).all()

    def test_attributes_are_asked_of_the_cases_alone_in_files_of_their_own(self, made):
        asking = made["blinded_packets"]["attribute_1"].notna()
        assert asking.sum() == 2 * len(self.CASES)
        files = made["annotator_files"]
        sheets = {n: f.decode("utf-8-sig") for n, f in files.items() if n.endswith(".csv")}
        assert all(("attribute_1" in text) == name.startswith("study/") for name, text in sheets.items())
        assert sum(text.count("Which is clearer?") for text in sheets.values()) == 2 * len(self.CASES)
        assert 'name="attribute_1"' in files["label_studio_study.xml"]
        assert 'name="attribute_1"' not in files["label_studio.xml"]

    def test_results_and_queue_are_filled(self, made):
        results = made["study_results"]
        asked = results[(results["statistic"] == "answered") & (results["cases"] == "all")]
        assert asked.set_index("question")["n"].to_dict() == {
            "overall": 6, "attributes": 12, "clarity": 6, "support": 6,
        }  # fmt: skip
        assert len(made["adjudication_queue"])
        assert (made["adjudicated_labels"]["rule"] == "third_decides").any()


class TestDemonstration:
    @pytest.fixture(scope="class")
    @staticmethod
    def demo():
        panel = [
            {"code": "annotator_1", "skill": 0.95},
            {"code": "annotator_2", "skill": 0.9, "first_bias": 0.5},
            {"code": "annotator_3", "skill": 0.9},
            {"code": "annotator_4", "skill": 0.6},
        ]
        options = make_options(simulation={"enabled": True, "annotators": panel}, analysis={"bootstrap": 200})
        return run(options, fabricate_pairs(40)), options

    def test_every_table_and_file_carries_the_word(self, demo):
        made, _ = demo
        inputs = {
            "pairs",
            "imported_labels",
            "logged_verdicts",
            "declared_rows",
            "label_rows",
            "study_questions",
        }
        for name, data in made.items():
            if isinstance(data, pd.DataFrame) and name not in inputs:
                assert "mark" in data.columns, name
                assert set(data["mark"]) <= {"SIMULATED"}, name
        for name, content in made["annotator_files"].items():
            if not name.endswith(".xlsx"):
                text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
                assert "SIMULATED" in text, name

    def test_nothing_simulated_is_called_human(self, demo):
        made, _ = demo
        assert set(made["labels"]["kind"]) == {"simulated"}
        assert set(made["adjudicated_labels"]["reference_kind"].dropna()) == {"simulated"}

    def test_planted_skill_and_habit_are_found(self, demo):
        made, options = demo
        key = RoundKey(None, options.round_id)
        table = made["annotator_table"].set_index(["annotator_id", "statistic"])["value"]
        right = {c: table[key.pseudonym(c), "agreement_with_expected"] for c in options.codes}
        # 100 labels each: three standard errors are .15 at most.
        assert right["annotator_1"] == pytest.approx(0.95, abs=0.08)
        assert right["annotator_4"] == pytest.approx(0.6, abs=0.15)
        assert table[key.pseudonym("annotator_2"), "first_position"] > 0.6

    def test_every_table_is_filled_and_the_round_is_done(self, demo):
        made, _ = demo
        for name in (
            "human_agreement",
            "human_confusion",
            "item_agreement",
            "annotator_drift",
            "human_ceiling",
        ):
            assert len(made[name]), name
        assert made["adjudicated_labels"]["undefined"].isna().all()
        assert made["adjudication_queue"].empty
