"""D-study: worked coefficients, prices, and designs about which the data say nothing."""

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from judge_calibration.metrics.dstudy import d_study, d_study_table, precision
from judge_calibration.metrics.gstudy import gstudy
from judge_calibration.options.variance import DStudyOptions, VarianceOptions

COMPONENTS = {
    "pair": 0.08,
    "judge": 0.004,
    "order": 0.006,
    "pair:judge": 0.04,
    "pair:order": 0.02,
    "judge:order": 0.01,
    "residual": 0.06,
}


class TestPrecision:
    def test_worked_random_order(self):
        # 2 judges, 1 format, 2 orders, 3 repetitions, 50 pairs:
        # relative error .04/2 + .02/2 + .06/12 = .035; shared .004/2 + .006/2 + .01/4 = .0075.
        result = precision(COMPONENTS, 50, judges=2, orders=2, repetitions=3)
        assert result.universe == pytest.approx(0.08)
        assert result.relative_error == pytest.approx(0.035)
        assert result.absolute_error == pytest.approx(0.0425)
        assert result.coefficient == pytest.approx(0.08 / 0.115)
        assert result.dependability == pytest.approx(0.08 / 0.1225)
        assert result.standard_error == pytest.approx(np.sqrt(0.115 / 50 + 0.0075))

    def test_worked_fixed_order(self):
        # Both orders are all there are: pair:order joins the universe (.08 + .02/2 = .09) and the order
        # effect is no error; judge:order still is: shared .004/2 + .01/4 = .0045; relative .04/2 + .005.
        result = precision(COMPONENTS, 50, judges=2, orders=2, repetitions=3, fixed=("order",))
        assert result.universe == pytest.approx(0.09)
        assert result.relative_error == pytest.approx(0.025)
        assert result.absolute_error == pytest.approx(0.0295)

    def test_nothing_varies(self):
        assert np.isnan(precision({"residual": 0.0}, 10).coefficient)

    def test_more_levels_never_hurt(self):
        few = precision(COMPONENTS, 50)
        for more in ({"judges": 2}, {"repetitions": 2}, {"formats": 3}):
            assert precision(COMPONENTS, 50, **more).coefficient >= few.coefficient


class TestDStudy:
    options = DStudyOptions(
        target_coefficient=0.7,
        pairs=(50,),
        judges=(1, 2, 3, 4),
        formats=(1,),
        orders=(1, 2),
        repetitions=(1, 2, 4),
        price_per_call=0.01,
        price_per_pair=0.5,
    )

    def test_cheapest_design_by_hand(self):
        # Coefficients: 2 judges x 2 orders x 4 repetitions: .08 / (.08 + .02 + .01 + .00375) = .7033, 800
        # calls; 3 judges x 2 orders x 1: .08 / (.08 + .01333 + .01 + .01) = .7059, 300 calls. Two judges with
        # fewer repetitions stay below .7, one judge never gets above .08/.12.
        table = d_study(COMPONENTS, self.options)
        cheapest = table[table["cheapest"]].iloc[0]
        assert (cheapest["judges"], cheapest["orders"], cheapest["repetitions"]) == (3, 2, 1)
        assert cheapest["coefficient"] == pytest.approx(0.08 / (0.08 + 0.04 / 3 + 0.01 + 0.01))
        assert cheapest["price"] == pytest.approx(300 * 0.01 + 50 * 0.5)
        assert (table.loc[table["reaches"], "price"] >= cheapest["price"]).all()

    def test_standard_error_target(self):
        options = self.options.model_copy(
            update={"target_coefficient": None, "target_standard_error": 0.09, "pairs": (50, 100)}
        )
        table = d_study(COMPONENTS, options)
        assert (table.loc[table["reaches"], "standard_error"] <= 0.09).all()
        assert table["cheapest"].sum() == 1

    def test_target_reached_exactly_counts(self):
        options = self.options.model_copy(update={"target_coefficient": 0.5, "judges": (1,), "orders": (1,)})
        table = d_study({"pair": 0.1, "residual": 0.1}, options)
        assert table.loc[table["cheapest"], "repetitions"].tolist() == [1]

    def test_out_of_reach_marks_nothing(self):
        table = d_study(COMPONENTS, self.options.model_copy(update={"target_coefficient": 0.99}))
        assert not table["reaches"].any()
        assert not table["cheapest"].any()

    def test_one_order_is_never_free_of_position_bias(self):
        fixed = d_study(COMPONENTS, self.options, order_as="fixed")
        one = fixed.query("orders == 1 and judges == 1 and repetitions == 1").iloc[0]
        assert one["coefficient"] == pytest.approx(0.08 / (0.08 + 0.04 + 0.02 + 0.06))

    def test_facet_with_one_level_in_the_data_says_nothing_of_more(self):
        table = d_study({"pair": 0.1, "residual": 0.1}, self.options, single=("judge",))
        more = table[table["judges"] > 1]
        assert set(more["undefined"]) == {"one_level_judge"}
        assert more["coefficient"].isna().all()

    def test_bad_levels_are_refused(self):
        with pytest.raises(ValidationError, match="orders"):
            DStudyOptions(orders=(3,))


def test_table_from_a_gstudy():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(30, 1, 1, 1)) + 0.5 * rng.normal(size=(30, 3, 1, 1))
    y = latent + rng.normal(size=(30, 3, 2, 2)) > 0
    index = np.indices(y.shape).reshape(4, -1)
    frame = pd.DataFrame(
        {
            "pair_id": index[0].astype(str),
            "judge_id": index[1].astype(str),
            "protocol": "direct",
            "order": np.array(["AB", "BA"])[index[2]],
            "repetition": index[3],
            "verdict": np.where(y.ravel(), "A", "B"),
        }
    )
    options = VarianceOptions(models=("main",), draws=200)
    table = d_study_table(gstudy(frame, options=options).components, options)
    assert set(table["order_as"]) == {"random", "fixed"}
    assert (table["formats"].dropna() == 1).all()
    kept = table[table["undefined"].isna()]
    assert (kept.groupby("order_as")["cheapest"].sum() == 1).all()
    for _, group in kept.groupby("order_as"):
        assert not group.duplicated(["price", "coefficient", "standard_error"]).any()
