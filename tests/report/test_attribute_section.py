import pandas as pd
import pytest
import yaml

from judge_calibration.options.attributes import AttributesOptions
from judge_calibration.pipelines.attributes import analysis, nodes
from judge_calibration.report.attribute_figures import _broken
from judge_calibration.report.attribute_section import TABLES, attributes_section
from judge_calibration.report.blocks import FigureBlock, Missing, Prose, TableBlock
from judge_calibration.schemas import READS, VERDICT_ROWS, empty

JUDGING = {"judges": [{"judge_id": "j", "model": "m/x", "protocols": ["attribute"]}]}
NAMES = ["depth", "rigor", "formality", "specificity", "breadth", "relevance"]


def tables_of(inventory, pairs, reads=None, count=4, **values):
    options = AttributesOptions.model_validate(
        {
            "judging": JUDGING,
            "attributes": NAMES,
            "pairs": count,
            "resamples": 100,
            "profile_null": {"repetitions": 3, "splits": 2},
            **values,
        }
    )
    reads = empty(READS) if reads is None else reads
    gathered = nodes.gather_reads(reads, empty(VERDICT_ROWS), pairs, inventory, options)
    packed, outcomes, items, choices, planted, _ = gathered
    panel = (packed, items, choices)
    names = ("attribute_coverage", "attribute_table", "attribute_families")
    found = dict(
        zip(names, analysis.describe_reads(packed, outcomes, items, choices, inventory, options), strict=True)
    )
    selected = analysis.select_items(*panel, inventory, options)
    found |= dict(zip(("subjective_set", "subjective_overlap", "attribute_case"), selected, strict=True))
    compared = analysis.compare_judges(*panel, found["attribute_table"], found["subjective_set"], options)
    found |= {f"attribute_{name}": table for name, table in compared._asdict().items()}
    found["attribute_agreement"] = found.pop("attribute_pairs")
    profiled = analysis.profile_judges(*panel, inventory, options)._asdict()
    found |= {"profiles": profiled["profiles"], "profile_summary": profiled["summary"]}
    found["profile_reliability"] = profiled["reliability"]
    found["panel_recovery"] = analysis.check_recovery(
        *panel,
        planted,
        found["attribute_table"],
        found["attribute_agreement"],
        profiled["profiles"],
        options,
    )
    return {name: found[name] for name in TABLES if name in found} | {"pairs": pairs}


@pytest.fixture(scope="module")
def inventory(project_path):
    return yaml.safe_load((project_path / "data/01_raw/attributes/inventory.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pairs():
    ids = ["p", "q"]
    return pd.DataFrame(
        {
            "pair_id": ids,
            "base_id": ids,
            "source": "s",
            "reference_label": ["A", None],
            "question": "Why?",
            "response_a": "<b>Because</b>",
            "response_b": "x" * 5_000,
        }
    )


@pytest.fixture(scope="module")
def simulated(inventory, pairs):
    panel = {"n_judges": 5, "n_items": 150, "n_sources": 2, "biased_judges": 1, "check_items": 150}
    return attributes_section(tables_of(inventory, pairs, count=0, panel=panel))


def test_a_panel_brings_every_figure_each_with_its_numbers_and_its_mark(simulated):
    drawn = {block.id: block for block in simulated.blocks if isinstance(block, FigureBlock)}
    assert set(drawn) == {
        *("heat-same", "heat-opposite", "coverage-agreement", "family-bars", "priority-map", "case-map"),
    }
    for block in drawn.values():
        assert block.simulated
        assert block.note
        assert block.alternative
        assert len(block.table.exact)
        assert "NaN" not in block.figure


def test_tables_say_simulated_and_show_both_panels(simulated):
    tables = {block.id: block for block in simulated.blocks if isinstance(block, TableBlock)}
    assert all(block.simulated for block in tables.values())
    assert set(tables["attribute-summary"].shown["Panel"]) == {"full", "reduced"}
    assert (tables["attribute-summary"].shown["Joint coverage"] != "–").all()
    assert "no" in set(tables["coverage-table"].shown["In the reduced panel"])
    assert len(tables["panel-recovery"].shown) == 12


def test_without_reads_the_section_says_what_brings_them(inventory, pairs):
    section = attributes_section(tables_of(inventory, pairs))
    assert [type(block) for block in section.blocks] == [Missing]


def reads_of(judges):
    """judges: {name: direction(item, order)}."""
    return pd.DataFrame(
        [
            {"pair_id": i, "judge_id": j, "attribute": k, "order": o, "direction": says(i, o)}
            for j, says in judges.items()
            for i in ("p", "q")
            for k in NAMES
            for o in ("AB", "BA")
        ]
    ).assign(outcome="valid")


def test_one_judge_that_sees_something_has_a_case_with_its_texts(inventory, pairs):
    section = attributes_section(tables_of(inventory, pairs, reads_of({"one": lambda i, o: "A"})))
    prose = " ".join(
        text for block in section.blocks if isinstance(block, Prose) for text in block.paragraphs
    )
    assert "No judge has a weight profile. one: no definite verdict." in prose
    assert "Answer A: <b>Because</b>" in prose
    assert "(5,000 characters)" in prose


def test_judges_that_all_name_a_position_leave_an_empty_reduced_panel_and_no_error(inventory, pairs):
    always_first = {name: lambda i, o: "A" if o == "AB" else "B" for name in ("one", "two")}
    section = attributes_section(tables_of(inventory, pairs, reads_of(always_first)))
    prose = section.blocks[0].paragraphs
    assert any("left out of the reduced panel" in text for text in prose)
    assert any("No judge resolves 5 % of its cells" in text for text in prose)
    assert any("Without one stable cell" in text for text in prose)


def test_few_shared_cells_are_told_and_not_drawn(inventory, pairs):
    """Two judges share the six attributes of one pair: a map of 100 % would be one square of six cells."""
    reads = reads_of({"j": lambda i, o: "A", "k": lambda i, o: "A" if i == "p" else "AB"[o == "AB"]})
    section = attributes_section(tables_of(inventory, pairs, reads))
    assert not {b.id for b in section.blocks if isinstance(b, FigureBlock)} & {"coverage-agreement"}
    told = [block.what for block in section.blocks if isinstance(block, Missing)]
    assert any("no two judges share more than 6 cells (joint coverage 50.00 %)" in what for what in told)


def test_names_side_by_side_are_broken_into_lines():
    assert _broken("smollm2-135m-shifted (A)") == "smollm2-<br>135m-<br>shifted (A)"
    assert _broken("gpt") == "gpt"
