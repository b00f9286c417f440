"""An exported model on the rows of a .csv, with onnxruntime and numpy alone.

python docs/examples/without_torch.py model.onnx rows.csv
"""

import csv
import json
import sys

import numpy as np
import onnxruntime


def main(model: str, table: str) -> None:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    said = session.get_modelmeta().custom_metadata_map
    labels, features = json.loads(said["labels"])["names"], json.loads(said["preprocessing"])["features"]
    with open(table, newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    places = [header.index(name) for name in features or header]
    rows = np.array([[line[place] for place in places] for line in lines], dtype=np.float64)
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, {"input": rows})))
    for number, distribution in enumerate(found["distribution"]):
        best = distribution.argmax()
        text = f"row {number}: {labels[best]} with {distribution[best]:.0%}"
        if "value" in found:
            low, high = found["interval_90"][number]
            text += f", value {found['value'][number]:.4f} {said['unit']}, 90% in {low:.4f} to {high:.4f}"
        print(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
