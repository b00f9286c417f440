"""Options as fields: the ``__init__`` that is made of them, its documentation, and the ranges."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import ldl.command.classes  # noqa: F401  all classes with options
from ldl.backbones.base import Backbone
from ldl.backbones.haar import Haar
from ldl.bags import Bagged, MILBoost, MPLBoost
from ldl.command import main
from ldl.command.command_line import parse_anew
from ldl.data import RotatedDigits
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import DSNA, Softmax, StructRF
from ldl.labels import LabelSpace
from ldl.options import Option, buffer, check_options, option, options, options_of
from ldl.spec import from_spec, to_spec
from ldl.testing import check_head

pytestmark = pytest.mark.usefixtures("blank_charts")

if TYPE_CHECKING:
    from fractions import Fraction

LABELS = LabelSpace.ordinal(range(4))


@options
class Line(Head):
    """A softmax layer.

    Args:
        scale: Factor of the scores.
        shift: Added to the scores.
    """

    kind: ClassVar[str] = "line"
    layer: nn.Linear = buffer()

    scale: float = option(default=1.0, above=0)
    shift: float = 0.0

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.layer = nn.Linear(in_features, len(labels))

    def forward(self, features: Tensor) -> Tensor:
        scores = self.layer(features)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return torch.softmax(self.scale * scores + self.shift, -1)


@options
class Bent(Line):
    """With a layer before.

    Args:
        widths: Of the layers before.
        mode: One of two.
        seed: A seed.
    """

    widths: Sequence[int] = option(default=(4,), least=1)
    mode: Literal["up", "down"] | None = None
    seed: int | None = option(default=None, least=0, most=2**63 - 1, null="the run's")


@options
class Fixed(Bent):
    """With one mode.

    Args:
        shift: Added to the scores, as before.
    """

    shift: float = option(default=2.0, least=-5, most=5)
    mode = "up"


@options
class FixedToo(Fixed):
    """No options of its own."""


@options
class Plain(nn.Module):
    """Options that must be given, and others.

    Args:
        first: With a default.
        needed: Without.
        owner: Without, and of a type that only type checkers know.
    """

    first: int = 1
    needed: float = option(least=0)
    owner: Fraction = option()
    parts: list[int]

    def __post_init__(self) -> None:
        self.parts = [self.first]
        self.layer = nn.Linear(2, 2)


@options
class Lazy(Softmax):
    """With an option whose type is known to type checkers alone.

    Args:
        number: One.
    """

    number: Fraction = option(default=None)


class Stubborn(Line):
    """Its own ``__init__``.

    Args:
        power: Of the scores.
    """

    def __init__(self, power: float = 2.0) -> None:
        super().__init__(scale=power)
        self.power = power


def ranged(annotation: Any = float, **known: Any) -> Option:
    return Option(**known, annotation=annotation)


def test_the_signature_says_everything() -> None:
    signature = inspect.signature(Bent)
    assert list(signature.parameters) == ["scale", "shift", "widths", "mode", "seed"]
    assert [p.default for p in signature.parameters.values()] == [1.0, 0.0, (4,), None, None]
    assert signature.parameters["mode"].annotation == Literal["up", "down"] | None
    assert {p.kind for p in signature.parameters.values()} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}
    head = Bent(2.0, widths=[3])
    assert (head.scale, head.shift, head.widths, head.mode) == (2.0, 0.0, [3], None)
    assert not hasattr(Bent, "scale") and "layer" not in options_of(Bent) and Bent.kind == "line"
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'; it has scale, "):
        Bent(depth=3)  # type: ignore[call-arg]
    with pytest.raises(LDLError, match="Bent got an unexpected keyword argument 'shfit'; did you mean 'shift'"):
        Bent(shfit=3)  # type: ignore[call-arg]


def test_what_is_given_without_a_type_is_fixed_also_below() -> None:
    for cls in (Fixed, FixedToo):
        assert list(options_of(cls)) == ["scale", "shift", "widths", "seed"]
        assert cls().mode == "up" and cls().shift == 2.0
    with pytest.raises(LDLError, match=r"^FixedToo.shift 6 must be in -5..5$"):
        check_options(FixedToo(shift=6))


def test_options_that_must_be_given_come_first() -> None:
    assert list(inspect.signature(Plain).parameters) == ["needed", "owner", "first"]
    with pytest.raises(TypeError, match="missing a required argument: 'owner'"):
        Plain(1.0)  # type: ignore[call-arg]
    made = Plain(1.0, owner=0, first=3)  # type: ignore[arg-type]
    assert made.parts == [3] and made.first == 3 and "layer" in dict(made.named_children())
    # Where the type is imported for type checkers alone, it stays text.
    assert options_of(Plain)["owner"].annotation == "Fraction"


def test_none_is_accepted_where_it_is_the_default() -> None:
    assert inspect.signature(Bagged).parameters["head"].annotation == Head | None
    assert isinstance(Bagged().head, Softmax) and isinstance(Bagged(head=None).head, Softmax)  # type: ignore[arg-type]
    with pytest.raises(LDLError, match=r"Line.scale None must be above 0$"):
        check_options(Line(None))  # type: ignore[arg-type]
    check_options(Bent(mode=None, seed=None))


@pytest.mark.parametrize(
    ("known", "words", "good", "bad"),
    [
        (ranged(least=1), "at least 1", [1, 2.5, True, np.int64(3)], [0, math.nan, np.int64(0), "2", None]),
        (ranged(above=0), "above 0", [1e-9], [0, -1, math.nan, math.inf]),
        (ranged(most=2), "at most 2", [2, -5], [2.1, math.nan]),
        (ranged(below=2), "below 2", [1.9], [2]),
        (ranged(least=0, most=1), "in 0..1", [0, 1], [-0.1, 1.1]),
        (ranged(above=0, most=1), "in (0, 1]", [1], [0]),
        (ranged(least=0, below=1), "in [0, 1)", [0], [1, 1.0]),
        (ranged(above=0, below=1), "in (0, 1)", [0.5], [0, 1]),
        (ranged(above=0, below=math.inf), "above 0 and finite", [7], [0, math.inf]),
        (ranged(least=0, most=2**63 - 1), "in 0..2^63 - 1", [2**63 - 1], [2**63]),
        (ranged(float | None, least=0), "at least 0", [None, 1], [-1]),
        (ranged(Sequence[int], least=1), "at least 1", [(), [1, 2], (3,)], [[1, 0], "12", 0]),
        (ranged(Literal["a", "b"]), "one of a, b", ["a", "b"], ["c", None, 1, ["a"]]),
        (ranged(Literal["a"] | None), "one of a", ["a", None], ["b"]),
        (ranged(bool | Literal["auto"]), "one of false, true, auto", [True, False, "auto"], ["yes", None]),
        (ranged(float | Literal["all"], above=0), "one of all or above 0", ["all", 2], [0, "some", None]),
        (ranged(least=0, most=math.inf), "at least 0", [math.inf], [-math.inf, math.nan]),
        (ranged(float), "", [1.0, -3], [math.nan, math.inf, [0.0, math.nan]]),
        (ranged(int, least=1), "at least 1", [2**63 - 1], [2**63, 10**30]),
        (ranged(str), "", ["x", 3, 10**18], [None, 10**30]),
        (ranged(str | None), "", ["x", None], []),
        (ranged("Fraction"), "", [None, 1], []),
    ],
)
def test_ranges(known: Option, words: str, good: list[Any], bad: list[Any]) -> None:
    assert known.range == words
    assert [value for value in good if not known.accepts(value)] == []
    assert [value for value in bad if known.accepts(value)] == []


def _outside(known: Option) -> list[Any]:
    """Values just outside the range of an option, and NaN."""
    found = [end for end in (known.above, known.below) if end is not None and math.isfinite(end)]
    found += [] if known.least is None else [known.least - 1]
    found += [] if known.most is None or known.most == math.inf else [known.most + 1]
    return [*found, math.nan] if found else []


def _bounded() -> list[tuple[type, str]]:
    classes = {cls for base in (Head, Backbone, LDLDataModule) for cls in _subclasses(base)}
    ours = sorted((cls for cls in classes if cls.__module__.startswith("ldl.")), key=lambda cls: cls.__name__)
    return [(cls, name) for cls in ours for name, known in options_of(cls).items() if _outside(known)]


def _subclasses(base: type) -> Iterator[type]:
    for cls in base.__subclasses__():
        if not inspect.isabstract(cls):
            yield cls
        yield from _subclasses(cls)


def test_every_class_refuses_what_is_out_of_range() -> None:
    tried = _bounded()
    assert len(tried) > 150
    for cls, name in tried:
        needed = {other: "x" for other, known in options_of(cls).items() if known.default is inspect.Parameter.empty}
        for value in _outside(options_of(cls)[name]):
            with pytest.raises(LDLError, match=rf"^{cls.__name__}\.{name} {value!r} must be "):
                check_options(cls(**(needed | {name: value})))


def test_ranges_are_checked_before_anything_is_made() -> None:
    """By the three contracts that classes with options keep."""
    for make in (
        lambda: Softmax(dropout=2.0).build(3, LABELS),
        lambda: Haar(pool=0).build((3, 8, 8)),
        lambda: RotatedDigits(turns=0).setup(),
    ):
        with pytest.raises(LDLError, match=r"^(Softmax.dropout|Haar.pool|RotatedDigits.turns) .* must be "):
            make()


def test_messages_name_class_option_value_and_what_is_accepted() -> None:
    with pytest.raises(LDLError, match=r"^Bent.scale nan must be above 0$"):
        Bent(math.nan).build(3, LABELS)
    with pytest.raises(LDLError, match=r"^Bent.widths \[4, 0\] must be at least 1$"):
        Bent(widths=[4, 0]).build(3, LABELS)
    with pytest.raises(LDLError, match=r"^Bent.mode 'left' must be one of up, down$"):
        Bent(mode="left").build(3, LABELS)  # type: ignore[arg-type]
    with pytest.raises(LDLError, match=r"^Bent.seed -1 must be in 0\.\.2\^63 - 1, or null for the run's$"):
        Bent(seed=-1).build(3, LABELS)
    with pytest.raises(LDLError, match=r"^Bent.shift inf must be finite$"):
        Bent(shift=math.inf).build(3, LABELS)
    with pytest.raises(LDLError, match=r"^Bent.shift None must be not null$"):
        Bent(shift=None).build(3, LABELS)  # type: ignore[arg-type]
    with pytest.raises(LDLError, match=r"^StructRF.min_leaf 1000000000000000000000 must be .* of at most 64 bits$"):
        StructRF(min_leaf=10**21).build(3, LABELS)
    with pytest.raises(LDLError, match=r"^MILBoost.r 0 must be at least 1 and finite, large is sharp$"):
        MILBoost(r=0).build(3, LabelSpace.nominal(["no", "yes"]))


def test_a_plain_init_is_as_good() -> None:
    head = Stubborn(3.0)
    assert head.scale == head.power == 3.0 and options_of(head) == {}
    assert to_spec(head)["init_args"] == {"power": 3.0}
    check_head(Stubborn)
    check_head(Line)
    check_head(Bent)


@pytest.mark.parametrize("head", [Bent(0.5, mode="up"), FixedToo(seed=3), DSNA(trees=2, clusters=3), Bagged(Line(2.0))])
def test_specs_pickles_and_copies_keep_the_options(head: Head) -> None:
    copies = (from_spec(to_spec(head), Head), copy.deepcopy(head), pickle.loads(pickle.dumps(head)))  # type: ignore[type-abstract]
    for again in copies:
        assert type(again) is type(head) and to_spec(again) == to_spec(head)
    assert all(name in to_spec(head)["init_args"] for name in options_of(head))


def test_subclasses_document_their_own_options_only() -> None:
    for cls, base, own in ((DSNA, DSNA.__mro__[1], "clusters"), (MPLBoost, MPLBoost.__mro__[1], "groups")):
        shared = list(options_of(base))
        assert shared == list(options_of(cls))[: len(shared)]
        assert not any(f"\n        {name}: " in cls.__doc__ for name in shared) and f"{own}: " in cls.__doc__


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("DSNA", ["Number of trees", "the paper uses 2 to 4"]),
        ("MPLBoost", ["Sharpness of", "Number of first rounds in which"]),
        ("MILBoost", ["Sharpness of", "Rounds without a better likelihood"]),
    ],
)
def test_help_of_a_head_describes_all_its_options(
    name: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_anew(["--model.head.help", name])
    said = " ".join(capsys.readouterr().out.split())
    for option_name in options_of(getattr(__import__("ldl.heads", fromlist=[name]), name)):
        assert f"--model.head.{option_name} " in said
    assert all(text in said for text in words)


def test_help_of_a_backbone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_anew(["--model.backbone.help", "Timm"])
    said = " ".join(capsys.readouterr().out.split())
    assert "Learning rate of the network; None uses that of the head. (type: float | null, default: null)" in said
    assert "default: resnet18" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model.head=DSNA", "--model.head.tree=3"], "DSNA has no option 'tree'; did you mean 'trees'"),
        (["--model.head=LDLF", "--model.head.dept=3"], "LDLF has no option 'dept'; did you mean 'depth'"),
        (["--model.head=MSLP", "--model.head.kernel=poly"], "model.head.kernel is 'poly', but must be one of"),
        (["--model.head=Lazy", "--model.head.numbr=3"], "Lazy has no option 'numbr'; did you mean 'number'"),
        (["--model.head=Softmax", "--model.head.hidden=[0]"], "Softmax.hidden [0] must be in 1..65536"),
    ],
)
def test_the_command_line_says_what_is_wrong(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--data=RotatedDigits", "--data.turns=1", "--model.backbone=Identity", *arguments])
    said = capsys.readouterr().err.strip()
    assert caught.value.code == 2 and message in said and "\n" not in said


def test_types_that_only_type_checkers_import_reach_the_command_line() -> None:
    config = parse_anew(
        ["--data=RotatedDigits", "--model.head=Lazy", "--model.head.number=null", "--model.head.dropout=0.1"]
    )
    assert dict(config.values.model.head.init_args)["number"] is None
    assert config.instantiate("model").head.dropout == 0.1
