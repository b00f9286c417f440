"""The encoding of a table's columns inside an ONNX graph, which then takes numbers and texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ldl.data.tables.columns import PARTS, Column, Encoding

Columns = dict[str, np.ndarray]
"""Inputs: ``numbers`` (N, K) float64, NaN for gaps, and ``texts`` (N, M), empty for gaps, if there are such columns."""


def number_names(encoding: Encoding) -> list[str]:
    """Return the names of the columns of ``numbers``; a date has four."""
    return [name for column in encoding.columns for name in _numbers(column)]


def text_names(encoding: Encoding) -> list[str]:
    """Return the names of the columns of ``texts``."""
    return [column.name for column in encoding.columns if column.kind == "category"]


def _numbers(column: Column) -> list[str]:
    if column.kind == "category":
        return []
    return [column.name] if column.kind == "number" else [f"{column.name} {part}" for part in PARTS]


def prepend(model: Any, encoding: Encoding) -> Any:
    """Return an ONNX model of encoded features (N, F) as one of :data:`Columns`."""
    from onnx import TensorProto, compose, helper, numpy_helper

    nodes: list[Any] = []
    constants: list[Any] = []
    # Features in the order of the graph, and their places in the order of the encoding.
    parts: list[str] = []
    order: list[int] = []
    names = encoding.names

    def constant(name: str, value: Any, dtype: str) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value, dtype), f"ldl_{name}"))
        return f"ldl_{name}"

    def add(kind: str, inputs: list[str], name: str, domain: str = "", **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [f"ldl_{name}"], domain=domain, **attributes))
        return f"ldl_{name}"

    def take(feature: str, found: list[str]) -> None:
        parts.append(feature)
        order.extend(names.index(name) for name in found)

    inputs = []
    if numbers := number_names(encoding):
        inputs.append(helper.make_tensor_value_info("numbers", TensorProto.DOUBLE, ["batch", len(numbers)]))
        fills = [list(c.fill or [np.nan] * len(_numbers(c))) for c in encoding.columns if c.kind != "category"]
        gaps = add("IsNaN", ["numbers"], "gaps")
        filled = constant("fill", [sum(fills, [])], "float64")
        take(add("Where", [gaps, filled, "numbers"], "filled"), numbers)
        marked = [column for column in encoding.columns if column.kind != "category" and column.missing]
        if marked:
            places = constant("marked", [numbers.index(_numbers(column)[0]) for column in marked], "int64")
            own = add("Gather", [gaps, places], "own_gaps", axis=1)
            take(add("Cast", [own], "marks", to=TensorProto.DOUBLE), [f"{column.name} missing" for column in marked])
    if texts := text_names(encoding):
        inputs.append(helper.make_tensor_value_info("texts", TensorProto.STRING, ["batch", len(texts)]))
    for number, column in enumerate(column for column in encoding.columns if column.kind == "category"):
        own = add("Gather", ["texts", constant(f"text_{number}", [number], "int64")], f"own_{number}", axis=1)
        last = len(column.categories)
        keys = {text: place for place, text in enumerate(column.categories)}
        keys[""] = last + column.other if column.missing else -1
        codes = add(
            "LabelEncoder", [own], f"code_{number}", "ai.onnx.ml", keys_strings=list(keys), 
            values_int64s=list(keys.values()), default_int64=last if column.other else -1,
        )  # fmt: skip
        if column.names:
            ones = add(
                "Equal", [codes, constant(f"places_{number}", [np.arange(len(column.names))], "int64")], f"is_{number}"
            )
            take(add("Cast", [ones], f"of_{number}", to=TensorProto.DOUBLE), column.names)
    found = add("Concat", parts, "all", axis=1)
    nodes.append(
        helper.make_node("Gather", [found, constant("order", np.argsort(order), "int64")], ["ldl_features"], axis=1)
    )
    features = helper.make_tensor_value_info("ldl_features", TensorProto.DOUBLE, ["batch", len(names)])
    graph = helper.make_graph(nodes, "columns", inputs, [features], constants)
    if all(known.domain != "ai.onnx.ml" for known in model.opset_import):
        model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    first = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    said = {"producer_name": model.producer_name, "producer_version": model.producer_version}
    return compose.merge_models(first, model, io_map=[("ldl_features", "input")], **said)


def draw_columns(encoding: Encoding, features: np.ndarray, rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
    """Draw columns like those of training, and return them with their features (N, F).

    Args:
        encoding: The encoding.
        features: (N, F) drawn numbers; those of number columns are taken.
        rng: Draws texts, dates and gaps.
    """
    import pandas

    names, rows, drawn = encoding.names, len(features), {}
    for column in encoding.columns:
        if column.kind == "category":
            entries = pandas.Series(rng.choice([*column.categories, "", "of no row"], rows), dtype=object)
        elif column.kind == "number":
            entries = pandas.Series(features[:, names.index(column.name)])
        else:
            entries = pandas.Series(np.datetime64("2000-01-01") + rng.integers(0, 10_000, rows))
        drawn[column.name] = entries.mask(rng.random(rows) < 0.1) if column.fill else entries
    parts = [Column(c.name, c.kind).transform(drawn[c.name]) for c in encoding.columns if c.kind != "category"]
    numbers, texts = (
        [part for some in parts for part in some],
        [drawn[name].to_numpy(object) for name in text_names(encoding)],
    )
    given = {"numbers": numbers, "texts": texts}
    return {n: np.stack(c, 1) for n, c in given.items() if c}, encoding.transform(
        pandas.DataFrame(drawn), "drawn inputs"
    )
