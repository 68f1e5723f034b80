import pandas as pd
from kedro.io import DataCatalog, MemoryDataset
from kedro.runner import SequentialRunner

from judge_calibration.options.adaptation import AdaptationOptions
from judge_calibration.pipelines.adaptation.pipeline import create_pipeline


def test_reweighting_gains_on_the_simulated_panel_and_everything_is_marked():
    pairs = pd.DataFrame(
        {
            "pair_id": [f"p{i}" for i in range(40)],
            "source": "s",
            "base_id": [f"b{i}" for i in range(40)],
            "split": ["train"] * 30 + ["test"] * 10,
            "reference_label": ["A", "B"] * 20,
        }
    )
    options = AdaptationOptions.model_validate(
        {
            "budgets": [32],
            "resamples": 2,
            "panel": {
                "n_items": 800,
                "n_attributes": 10,
                "strength": 2.0,
                "resolution_low": 0.9,
                "resolution_high": 0.95,
                "accuracy_low": 0.95,
            },
        }
    )
    catalog = DataCatalog({"pairs": MemoryDataset(pairs), "params:adaptation": MemoryDataset(options)})
    for name in ("splits", "training_subsets", "adaptation_table", "sample_efficiency", "split_report"):
        catalog[name] = MemoryDataset()
    SequentialRunner().run(create_pipeline(), catalog)
    table = catalog["adaptation_table"].load()
    assert table["simulated"].all()
    assert table["judge_id"].str.startswith("SIMULATED").all()
    full = table[table["budget"] == "full"]
    assert len(full) == 6
    assert (full["accuracy"] > 0.7).all()
    assert (full["delta_low"] <= full["delta"]).all()
    assert catalog["sample_efficiency"].load()["budget"].tolist() == ["32", "full"]
    assert catalog["splits"].load()["split"].value_counts().to_dict() == {"train": 30, "test": 10}
