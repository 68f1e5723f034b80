import numpy as np
import pytest

from judge_calibration.metrics.logistic import fit_logistic


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("c", [0.1, 1.0, 10.0])
def test_equals_scikit_learn(intercept, c):
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    x = rng.integers(-1, 2, size=(200, 12)).astype(float)
    y = np.where(rng.random(200) < 1 / (1 + np.exp(-x @ rng.normal(size=12))), 1, -1)
    ours = fit_logistic(x, y, c, intercept)
    theirs = LogisticRegression(C=c, fit_intercept=intercept, tol=1e-10, max_iter=10_000).fit(x, y)
    np.testing.assert_allclose(ours.coefficients, theirs.coef_[0], atol=1e-5)
    assert ours.intercept == pytest.approx(float(np.ravel(theirs.intercept_)[0]), abs=1e-5)


def test_separable_data_converge_because_the_penalty_bounds_the_weights():
    x = np.array([[1.0], [2.0], [-1.0], [-2.0]])
    fit = fit_logistic(x, np.array([1, 1, -1, -1]), c=1e4)
    assert np.isfinite(fit.coefficients).all()
    assert fit.coefficients[0] > 3


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    fit = fit_logistic(rng.normal(size=(10, 87)), np.array([1, -1] * 5))
    assert np.isfinite(fit.coefficients).all()


@pytest.mark.parametrize("y", [[1, 1, 1], [1, 0, -1], [0, 1, 1]])
def test_refuses_one_class_and_other_values(y):
    with pytest.raises(ValueError, match="both classes"):
        fit_logistic(np.ones((3, 1)), np.array(y))
