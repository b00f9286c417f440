"""YAML keeps the text of its scalars, and what is written is read as the same."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from fakes.yaml_texts import MARKS, WORDS
from hypothesis import given, settings
from hypothesis import strategies as st

from ldl.validation.yaml_text import Scalar, dump, load, load_option, load_values, resolved

PLAIN = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=12)


SCALARS = st.one_of(
    st.sampled_from([*WORDS, *MARKS, "null"]), PLAIN, st.from_regex(r"[-+0-9.:eE_xo]{1,8}", fullmatch=True)
)


CONTENT = st.recursive(
    SCALARS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS, inner, max_size=3),
)


@settings(max_examples=300, deadline=None)
@given(CONTENT)
def test_yaml_that_is_written_is_read_as_the_same(content: Any) -> None:
    assert load_values(dump(content)) == content
    assert load_values(dump(load(dump(content)))) == content
    flow = dump([content], flow=True)
    assert resolved(load_option(flow)) == [content]
    # Other programs read version 1.1.
    assert not any(isinstance(part, str) and not isinstance(other, str) for part, other in pairs(content, flow))


def pairs(content: Any, flow: str) -> list[tuple[Any, Any]]:
    other = yaml.safe_load(flow)[0]
    return list(zip(leaves(content), leaves(other)))


def leaves(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return [leaf for value in content.values() for leaf in leaves(value)]
    return [leaf for value in content for leaf in leaves(value)] if isinstance(content, list) else [content]


def test_other_tags_of_yaml_are_refused() -> None:
    for text in ("a: !!binary aGk=", "a: !!python/name:os.system", "a: !!timestamp 2020-01-01", "a: !!int x"):
        with pytest.raises(yaml.YAMLError):
            load(text)
    assert load("a: !!str 5") == {"a": "5"} and load("[007]") == [Scalar("007", 7)]
