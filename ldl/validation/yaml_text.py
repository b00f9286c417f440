"""YAML as every file and option is read: version 1.2, in which a scalar keeps its text, and a bounded number of nodes.

YAML 1.1, which PyYAML reads, takes 010 for 8, 1:30 for 90, ``on`` for true, and 1e3 for a text. Here a number is
decimal, ``true`` and ``false`` are truth values, ``null`` is None, and all else is text. A number, a truth value or
null whose text is not the usual one becomes a :class:`Scalar`, and a quoted text that would be one becomes a
:class:`Quoted`, so that the type of an option can decide (:mod:`ldl.command.values`). :func:`resolved` decides without
a type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import yaml
from lightning_utilities.core.enums import StrEnum

MAX_NODES = 100_000
"""Largest number of nodes of a document in which every alias is replaced by its content."""

WHOLE = re.compile(r"[-+]?[0-9]+")
NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{f"{sign}{word}": float(f"{sign}inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
"""Words that are no text."""
HIDDEN = re.compile(r"[ \t]+(#[^\s#]\S*)")
"""A comment that looks like a value, as in ``key: #value``."""
TAG = "tag:yaml.org,2002:"
TAGS = {type(None): f"{TAG}null", bool: f"{TAG}bool", int: f"{TAG}int", float: f"{TAG}float", str: f"{TAG}str"}


@dataclass(frozen=True)
class Scalar:
    """A number, truth value or null with a text that is not its :func:`spelling`, such as 007, 1e3, True or ~."""

    text: str
    value: Any


class Quoted(str):
    """A text in quotes that would be a number, a truth value, null, a list or a mapping without them."""


def resolve(text: str) -> Any:
    """Return the number, truth value or None of a plain scalar, or the text itself."""
    if text in WORDS:
        return WORDS[text]
    if WHOLE.fullmatch(text):
        try:
            return int(text)
        except ValueError:  # more digits than Python converts
            return text
    return float(text) if NUMBER.fullmatch(text) else text


def spelling(value: Any) -> str:
    """Return the usual text of a number, a truth value or None."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = str(value)
    return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(text, text)


def load(text: str) -> Any:
    """Return the content of a YAML document. Raises yaml.YAMLError."""
    return yaml.load(text, _Loader)


def load_option(text: str) -> Any:
    """Return the value of an option on a command line: a list or a mapping in brackets, or else the text itself.

    There are no comments, anchors, aliases or tags. Raises yaml.YAMLError for a mistake inside of brackets.
    """
    ends = text.strip()[:1] + text.strip()[-1:]
    if ends in ("[]", "{}"):
        return load(_TOKEN.sub(_as_text, text))
    return None if text.strip() == "null" else text


def load_values(text: str) -> Any:
    """Return the content of a YAML document without its spelling: :func:`resolved`. Raises yaml.YAMLError."""
    return resolved(load(text))


def resolved(content: Any) -> Any:
    """Return content with plain values in place of :class:`Scalar` and :class:`Quoted`."""
    if isinstance(content, dict):
        return {name: resolved(value) for name, value in content.items()}
    if isinstance(content, list):
        return [resolved(value) for value in content]
    return content.value if isinstance(content, Scalar) else str(content) if isinstance(content, Quoted) else content


def dump(content: Any, flow: bool = False) -> str:
    """Return content as YAML that :func:`load`, and readers of YAML 1.1, read as the same.

    Args:
        content: Plain values, :class:`Scalar` and :class:`Quoted`, in lists and mappings.
        flow: Whether to write brackets, as an option accepts them.
    """
    return str(yaml.dump(content, Dumper=_Dumper, default_flow_style=flow, allow_unicode=True, sort_keys=False))


class _Loader(yaml.SafeLoader):
    """Raises YAMLError for a key that is given twice, for other tags than those above, and for too many nodes."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # none of those of YAML 1.1
    yaml_constructors: ClassVar[dict[Any, Any]] = {}

    def get_single_node(self) -> Any:
        node = super().get_single_node()
        if node is not None:
            _count(node, {})
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in lines:
                problem = f"{key.value!r} is given again, after line {lines[key.value]}; remove one"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            if isinstance(key, yaml.ScalarNode):
                lines[key.value] = key.start_mark.line + 1
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                key.tag = _key_tag(key, value)
        super().flatten_mapping(node)


def _key_tag(key: yaml.ScalarNode, value: Any) -> str:
    """Return the tag of a key: ``<<`` merges mappings, a usual whole number is one, and any other key is a text."""
    merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
    if key.value == "<<" and key.style is None and all(isinstance(each, yaml.MappingNode) for each in merged):
        return f"{TAG}merge"
    is_whole = key.tag == TAGS[int] and str(resolve(key.value)) == key.value
    return TAGS[int] if is_whole else TAGS[str]


def _count(node: Any, counts: dict[int, int]) -> int:
    """Return the number of nodes below a node, with aliases expanded. Raises YAMLError for too many."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in counts:
        counts[id(node)] = MAX_NODES  # until it is known: a node that contains itself has no end
        pairs = isinstance(node, yaml.MappingNode)
        children = [each for pair in node.value for each in pair] if pairs else node.value
        counts[id(node)] = 1 + sum(_count(child, counts) for child in children)
    if counts[id(node)] > MAX_NODES:
        problem = f"it has more than {MAX_NODES} nodes with its aliases expanded, or contains itself"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return counts[id(node)]


def _scalar(loader: _Loader, node: yaml.ScalarNode) -> Any:
    value, mark = resolve(node.value), node.start_mark
    if not node.value and mark.buffer and (hidden := HIDDEN.match(mark.buffer, mark.pointer)):
        problem = f"{hidden[1]} is a comment, so the value is empty; put it in quotes, or a space after #"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
    if node.tag == TAGS[int] and WHOLE.fullmatch(node.value) and isinstance(value, str):
        return value
    if TAGS[type(value)] != node.tag:
        raise yaml.MarkedYAMLError(problem=f"{node.value!r} is no {node.tag}", problem_mark=node.start_mark)
    return value if spelling(value) == node.value or not node.value else Scalar(node.value, value)


def _text(loader: _Loader, node: yaml.ScalarNode) -> str:
    text = str(node.value)
    return Quoted(text) if text.strip()[:1] in ("[", "{") or not isinstance(resolve(text), str) else text


_BLANK = " \t\r\n\x85\u2028\u2029"
"""Characters between the parts of a document. Other spaces, such as the no-break space, are parts of a text."""
_TOKEN = re.compile(rf"""'(?:[^']|'')*'|"(?:\\.|[^"\\])*"|[^{_BLANK},\[\]{{}}'":](?:(?!:[{_BLANK}])[^,\[\]{{}}])*""")
"""A text inside of brackets, in quotes or plain."""


def _as_text(match: re.Match[str]) -> str:
    """Return a plain text in quotes if a file would read its first sign, or what follows `` #``, as something else."""
    text = match[0].rstrip(_BLANK)
    if text[0] not in "#&*!%@`|>" and not re.search(rf"[{_BLANK}]#", text[1:]) or text[0] in "'\"":
        return match[0]
    return "'" + text.replace("'", "''") + "'" + match[0][len(text) :]


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


for _kind, _first in ((int, "-+0123456789"), (float, "-+.0123456789")):
    _pattern = re.compile(rf"(?:{(WHOLE if _kind is int else NUMBER).pattern})\Z")
    _Loader.add_implicit_resolver(TAGS[_kind], _pattern, list(_first))
    _Dumper.add_implicit_resolver(TAGS[_kind], _pattern, list(_first))
for _word, _value in WORDS.items():
    _Loader.add_implicit_resolver(TAGS[type(_value)], re.compile(rf"{re.escape(_word)}\Z"), [_word[:1]])
for _tag in TAGS.values():
    _Loader.add_constructor(_tag, _text if _tag == TAGS[str] else _scalar)
_Loader.add_constructor(f"{TAG}seq", _Loader.construct_yaml_seq)  # type: ignore[type-var]
_Loader.add_constructor(f"{TAG}map", _Loader.construct_yaml_map)  # type: ignore[type-var]
_Loader.add_constructor(None, _Loader.construct_undefined)  # type: ignore[type-var]
_Dumper.add_representer(Scalar, lambda dumper, scalar: dumper.represent_scalar(TAGS[type(scalar.value)], scalar.text))
_Dumper.add_representer(Quoted, lambda dumper, text: dumper.represent_scalar(TAGS[str], str(text), style="'"))
# Defaults of Lightning's callbacks are such members, as in ``Timer``; YAML cannot write them.
_Dumper.add_multi_representer(StrEnum, lambda dumper, member: dumper.represent_str(member.value))
