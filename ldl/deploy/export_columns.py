"""The encoding of a table's columns inside an ONNX graph, which then takes numbers, texts and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ldl.data.tables.columns import PARTS, ColumnEncoding, Encoding
from ldl.data.text import TextEncoding
from ldl.data.text.wordllama import LEAST_LENGTH, WordLlama

ML = "ai.onnx.ml"
"""Domain of ONNX's operators for texts."""
ColumnArrays = dict[str, np.ndarray]
"""Inputs, if there are such columns: ``numbers`` (N, K) float64, NaN for gaps; ``texts`` (N, M) of categories, empty
for gaps; and ``tokens_0``, ``tokens_1``, ... (N, T) int64, the numbers of the tokens of a column of text, then -1."""


def number_names(encoding: Encoding) -> list[str]:
    """Return the names of the columns of ``numbers``; a date has four."""
    return [name for column in encoding.columns for name in _numbers(column)]


def text_names(encoding: Encoding) -> list[str]:
    """Return the names of the columns of ``texts``, which are categories."""
    return [column.name for column in encoding.columns if column.kind == "category"]


def token_names(encoding: Encoding) -> list[str]:
    """Return the names of the columns of ``tokens_0``, ``tokens_1``, ..., which are text."""
    return [column.name for column in encoding.columns if column.kind == "text"]


def _numbers(column: ColumnEncoding) -> list[str]:
    if column.kind in ("category", "text"):
        return []
    return [column.name] if column.kind == "number" else [f"{column.name} {date_part}" for date_part in PARTS]


def prepend(model: Any, encoding: Encoding) -> Any:
    """Return an ONNX model of encoded features (N, F) as one of :data:`ColumnArrays`."""
    from onnx import TensorProto, compose, helper, numpy_helper

    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(value: Any, dtype: str) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value, dtype), f"ldl_constant_{len(constants)}"))
        return str(constants[-1].name)

    def add(kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [f"ldl_node_{len(nodes)}"], domain=domain, **attributes))
        return str(nodes[-1].output[0])

    def as_number(truth: str) -> str:
        return add("Cast", truth, to=TensorProto.DOUBLE)

    def embed(tokens: str, encoding: TextEncoding) -> tuple[str, str]:
        """Add the encoding of tokens as :class:`ldl.data.text.wordllama.WordLlama`; return features and gaps."""
        zero, end, axis = (constant([number], "int64") for number in (0, encoding.tokens, 1))
        none, infinity = constant([0.0], "float64"), constant([np.inf], "float64")
        # A last token of -1, because a maximum of no tokens does not exist.
        ids = add("Pad", add("Slice", tokens, zero, end, axis), constant([0, 0, 0, 1], "int64"), constant(-1, "int64"))
        present = add("GreaterOrEqual", ids, zero)
        is_token = add("Unsqueeze", present, constant([2], "int64"))
        rows = as_number(add("Gather", vectors(), add("Max", ids, zero)))
        units = at_unit_length(rows)
        mean = at_unit_length(add("ReduceSum", add("Where", is_token, rows, none), axis, keepdims=0))
        most = add("ReduceMax", add("Where", is_token, units, add("Neg", infinity)), axis, keepdims=0)
        least = add("ReduceMin", add("Where", is_token, units, infinity), axis, keepdims=0)
        pooled = add(
            "Mul", add("Concat", mean, most, least, axis=1), constant([(encoding.width / 3) ** 0.5], "float64")
        )
        gaps = add("Equal", add("ReduceSum", as_number(present), axis), none)
        features = add("Where", gaps, none, pooled)
        return as_number(add("Cast", features, to=TensorProto.FLOAT)), gaps

    def at_unit_length(rows: str) -> str:
        """Add the division of vectors by their lengths."""
        square = add("ReduceSum", add("Mul", rows, rows), constant([-1], "int64"))
        return add("Div", rows, add("Max", add("Sqrt", square), constant([LEAST_LENGTH], "float64")))

    @cache
    def vectors() -> str:
        return constant(WordLlama().vectors, "float16")

    numbers, texts, tokens = number_names(encoding), text_names(encoding), token_names(encoding)
    parts = []
    for column in encoding.columns:
        if column.text is not None:
            features, gaps = embed(f"tokens_{tokens.index(column.name)}", column.text)
            parts += [features] + [as_number(gaps)] * column.missing
            continue
        if column.kind == "category":
            last = len(column.categories)
            places = {text: number for number, text in enumerate(column.categories)}
            places[""] = last + column.other if column.missing else -1
            entries = add("Gather", "texts", constant([texts.index(column.name)], "int64"), axis=1)
            codes = add(
                "LabelEncoder", entries, domain=ML, keys_strings=list(places), values_int64s=list(places.values()),
                default_int64=last if column.other else -1,
            )  # fmt: skip
            parts.append(as_number(add("Equal", codes, constant([range(len(column.names))], "int64"))))
            continue
        positions = constant([numbers.index(name) for name in _numbers(column)], "int64")
        entries = add("Gather", "numbers", positions, axis=1)
        gaps = add("IsNaN", entries)
        filled = entries if column.fill is None else add("Where", gaps, constant([column.fill], "float64"), entries)
        parts.append(filled)
        if column.missing:
            parts.append(as_number(add("Gather", gaps, constant([0], "int64"), axis=1)))
    features = add("Concat", *parts, axis=1)
    kinds = {"numbers": (numbers, TensorProto.DOUBLE), "texts": (texts, TensorProto.STRING)}
    inputs_info = [helper.make_tensor_value_info(n, kind, ["batch", len(of)]) for n, (of, kind) in kinds.items() if of]
    for number in range(len(tokens)):
        name, sizes = f"tokens_{number}", ["batch", f"length_{number}"]
        inputs_info.append(helper.make_tensor_value_info(name, TensorProto.INT64, sizes))
    features_info = helper.make_tensor_value_info(features, TensorProto.DOUBLE, ["batch", len(encoding.names)])
    if all(opset.domain != ML for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid(ML, 3))
    graph = helper.make_graph(nodes, "columns", inputs_info, [features_info], constants)
    first = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    producer = {"producer_name": model.producer_name, "producer_version": model.producer_version}
    return compose.merge_models(first, model, io_map=[(features, "input")], **producer)


def draw_columns(encoding: Encoding, features: np.ndarray, rng: np.random.Generator) -> tuple[ColumnArrays, np.ndarray]:
    """Draw columns like those of training, and return them with their features (N, F).

    Args:
        encoding: The encoding.
        features: (N, F) drawn numbers for the columns of numbers; other columns do not use them.
        rng: Draws texts, dates and gaps.
    """
    import pandas

    places, rows, drawn = encoding.places, len(features), {}
    for column in encoding.columns:
        if column.text is not None:
            entries = pandas.Series(_draw_texts(rows, column.text.tokens, rng), dtype=object)
        elif column.kind == "category":
            entries = pandas.Series(rng.choice([*column.categories, "", "of no row"], rows), dtype=object)
        elif column.kind == "number":
            entries = pandas.Series(features[:, places[column.name]])
        else:
            entries = pandas.Series(np.datetime64("2000-01-01") + rng.integers(0, 10_000, rows))
        has_gaps = column.fill or column.kind == "text"
        drawn[column.name] = entries.mask(rng.random(rows) < 0.1) if has_gaps else entries
    columns: dict[str, list[np.ndarray]] = {"numbers": [], "texts": []}
    tokens: dict[str, np.ndarray] = {}
    for column in encoding.columns:
        if column.kind == "text":
            tokens[f"tokens_{len(tokens)}"] = pad_tokens(WordLlama().token_ids(drawn[column.name].fillna("")))
        elif column.kind == "category":
            columns["texts"].append(drawn[column.name].to_numpy(object))
        else:
            columns["numbers"] += ColumnEncoding(column.name, column.kind).transform(drawn[column.name])
    made = encoding.transform(pandas.DataFrame(drawn), "drawn inputs")
    return {name: np.stack(parts, 1) for name, parts in columns.items() if parts} | tokens, made


def pad_tokens(ids: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the numbers of tokens of texts as (N, T), int64, with -1 behind those of shorter texts."""
    padded = np.full((len(ids), max(map(len, ids), default=0)), -1)
    for row, numbers in enumerate(ids):
        padded[row, : len(numbers)] = numbers
    return padded


def _draw_texts(rows: int, tokens: int, rng: np.random.Generator) -> list[str]:
    """Return texts of random tokens, some of which have more than ``tokens``."""
    encoder = WordLlama()
    lengths = rng.integers(1, min(tokens, 64) + 8, rows)
    return [encoder.tokenizer.decode(rng.integers(0, len(encoder.vectors), length)).strip() for length in lengths]
