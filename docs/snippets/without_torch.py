"""An exported model on the rows of a .csv, with onnxruntime and numpy alone.

python docs/snippets/without_torch.py model.onnx rows.csv
"""

import csv
import json
import sys

import numpy as np
import onnxruntime


def main(model: str, table: str) -> None:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    said = session.get_modelmeta().custom_metadata_map
    labels, prepared = json.loads(said["labels"])["names"], json.loads(said["preprocessing"])
    with open(table, newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    # A model of text has the inputs numbers and texts.
    columns, inputs = prepared.get("columns") or {"input": prepared["features"] or header}, {}
    for kind, wanted in columns.items():
        rows = np.array([[line[header.index(name)] for name in wanted] for line in lines], dtype=object)
        inputs[kind] = rows if kind == "texts" else np.where(rows == "", "nan", rows).astype(np.float64)
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, {kind: rows for kind, rows in inputs.items() if rows.size})))
    for number, distribution in enumerate(found["distribution"]):
        best = distribution.argmax()
        text = f"row {number}: {labels[best]} with {distribution[best]:.0%}"
        if "value" in found:
            low, high = found["interval_90"][number]
            text += f", value {found['value'][number]:.4f} {said['unit']}, 90% in {low:.4f} to {high:.4f}"
        print(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
