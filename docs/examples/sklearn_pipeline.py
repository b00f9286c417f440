# %% [markdown]
# # A scikit-learn pipeline
#
# Search the hyperparameters of a pipeline, and get prediction intervals whose
# coverage is calibrated.
#
# The data are the 442 patients of scikit-learn's `load_diabetes`. The target is
# the progression of the disease after a year, one number for each patient.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from ldl import LDLRegressor
from ldl.heads import StructRF

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
print(X.assign(progression=y).head(3).to_string(index=False))

# %% [markdown]
# ## Search
#
# `LDLRegressor` encodes each value as a distribution around it, and `predict`
# returns point predictions. An option of the head is a parameter with the
# prefix `head__`.

# %%
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=1 / 3, random_state=0
)
pipeline = make_pipeline(
    PolynomialFeatures(interaction_only=True, include_bias=False),
    LDLRegressor(StructRF(trees=50)),
)
options = {"ldlregressor__head__min_leaf": [2, 5, 10]}
search = GridSearchCV(pipeline, options, cv=3).fit(X_train, y_train)
r2 = search.score(X_test, y_test)
print(search.best_params_, f"R2 {r2:.3f} on the test set")

# %% [markdown]
# ## Calibrated intervals
#
# The spread of a predicted distribution says which patients are hard to
# predict, but its intervals need not hold the stated share of the values.
# `conformal="cross"` calibrates them with out-of-fold predictions of the
# training set.

# %%
search.best_estimator_.set_params(ldlregressor__conformal="cross").fit(
    X_train, y_train
)
steps, model = search.best_estimator_[:-1], search.best_estimator_[-1]
prepared = steps.transform(X_test)
levels = np.linspace(0.1, 0.9, 9)


def coverage(level: float) -> float:
    """Return the share of test values in their intervals."""
    low, high = model.predict_interval(prepared, level).T
    return float(np.mean((low <= y_test) & (y_test <= high)))


covered = [coverage(level) for level in levels]
print(f"90% intervals hold {covered[-1]:.1%} of the {len(y_test)} test values")

# %%
low, high = model.predict_interval(prepared, 0.9).T
order = np.argsort(model.predict(prepared))
figure, (left, right) = plt.subplots(
    1, 2, figsize=(5.5, 2.8), width_ratios=[3, 2], layout="constrained"
)
left.fill_between(
    range(len(order)),
    low[order],
    high[order],
    color="tab:blue",
    alpha=0.25,
    label="90% interval",
)
left.plot(model.predict(prepared)[order], color="tab:blue", label="predicted")
left.plot(
    y_test.to_numpy()[order], ".", color="black", markersize=4, label="true"
)
left.set(xlabel="test patients, sorted", ylabel="progression")
left.legend(fontsize="small")
right.plot([0, 1], [0, 1], color="lightgrey")
right.plot(levels, covered, "o-", color="tab:blue")
right.set(xlabel="stated level", ylabel="share inside", aspect="equal")
plt.show()

# %% [markdown]
# Points on the grey diagonal have the stated coverage.
#
# ## Where to go next
#
# [Use ldl with scikit-learn](../guides/sklearn.md) lists parameters, weights
# and groups. [Calibration and conformal intervals](../concepts/calibration.md)
# says what the intervals guarantee.
