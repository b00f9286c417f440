# %% [markdown]
# # Export and serve without torch
#
# Write a trained model to an ONNX file, compare it with torch, and predict in a
# process that has neither torch nor ldl.
#
# The model predicts the progression of diabetes of 442 patients, as in the
# [scikit-learn pipeline](sklearn_pipeline.md).

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from ldl import LDLRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=1 / 3, random_state=0
)
model = LDLRegressor("StructRF", conformal="cross").fit(X_train, y_train)
X_test.to_csv("patients.csv", index=False)
print(X_test.head(3).to_string(index=False))

# %% [markdown]
# ## Export
#
# `export` compares the file with torch on random rows before it keeps the file.
# If they differ, it raises an error. On the command line: `ldl export
# diabetes.ckpt --out diabetes.onnx`.

# %%
from ldl.deploy.export import export

model.save("diabetes.ckpt")
done = export("diabetes.ckpt", "diabetes.onnx", force=True)
print(f"{done.size / 1e6:.1f} MB", done.parity)

# %% [markdown]
# ## Serve
#
# The script needs onnxruntime and numpy. Scaling, intervals and labels are in
# the file.

# %%
import subprocess
import sys
from pathlib import Path

script = """\
import sys

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(
    "diabetes.onnx", providers=["CPUExecutionProvider"]
)
rows = np.loadtxt("patients.csv", delimiter=",", skiprows=1)
names = [output.name for output in session.get_outputs()]
found = dict(zip(names, session.run(None, {"input": rows})))
for value, (low, high) in zip(found["value"][:3], found["interval_90"]):
    print(f"{value:.0f}, 90% in {low:.0f} to {high:.0f}")
np.savez("served.npz", **found)
print("torch or ldl loaded:", "torch" in sys.modules or "ldl" in sys.modules)
"""
Path("serve.py").write_text(script, encoding="utf-8")
served = subprocess.run(
    [sys.executable, "serve.py"], capture_output=True, text=True, check=True
)
print(served.stdout)

# %% [markdown]
# ## Compare the predictions
#
# The bars are the predictions of torch, the dots those of the served file. The
# grey band is the calibrated 90% interval.

# %%
from ldl import Predictor

with np.load("served.npz") as arrays:
    onnx = dict(arrays)
torch_model = Predictor.from_checkpoint("diabetes.ckpt")
found = torch_model(X_test)
difference = np.abs(onnx["distribution"] - found.distribution).max()
print(f"largest difference {difference:.0e} on {len(X_test)} patients")

figure, axes = plt.subplots(
    1, 3, figsize=(5.5, 2.6), sharey=True, layout="constrained"
)
values = np.asarray(found.labels.axes[0])
for axis, row in zip(axes, range(3)):
    axis.axvspan(
        *onnx["interval_90"][row], color="lightgrey", label="90% interval"
    )
    axis.bar(
        values,
        found.distribution[row],
        width=values[1] - values[0],
        color="tab:blue",
        alpha=0.5,
        label="torch",
    )
    axis.plot(
        values,
        onnx["distribution"][row],
        ".",
        color="black",
        markersize=3,
        label="ONNX",
    )
    axis.set(title=f"patient {row + 1}", xlabel="progression")
axes[0].set_ylabel("probability")
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3
)
plt.show()

# %% [markdown]
# ## Where to go next
#
# [Export a model](../guides/export.md) lists inputs and outputs.
# [A page
# for a trained model](../guides/export.md#show-a-model-on-a-web-page) serves a
# model in the browser.
