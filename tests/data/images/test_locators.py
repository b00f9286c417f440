"""A task gets the locator of the objects that its images show, else the first. Without any, one line reports it."""

from __future__ import annotations

from typing import Any

import pytest

from ldl.data.images import locators
from ldl.data.images.locators import find_locator, shows_objects
from ldl.errors import LDLError


class Faces:
    """A locator of the objects of one kind of task."""

    kind = "faces"

    def shows(self, preprocessing: dict[str, Any]) -> bool:
        return bool(preprocessing.get(self.kind))


class Cars(Faces):
    """Another one."""

    kind = "cars"


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[str, type]:
    classes: dict[str, type] = {"faces": Faces, "cars": Cars}
    monkeypatch.setattr(locators, "load_registered", lambda group: classes)
    return classes


@pytest.mark.parametrize(("kind", "cls"), [("cars", Cars), ("faces", Faces), ("trees", Faces)])
def test_the_preprocessing_selects_the_locator(kind: str, cls: type, registered: dict[str, type]) -> None:
    assert type(find_locator({kind: True})) is cls
    assert shows_objects({kind: True}) is (kind != "trees")


def test_no_locator_is_one_line(registered: dict[str, type]) -> None:
    registered.clear()
    with pytest.raises(LDLError, match="no installed package locates objects in images; use whole images"):
        find_locator({})
    assert not shows_objects({"faces": True})
