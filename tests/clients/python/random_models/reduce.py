"""Smaller models that still fail."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable


def reduced(xml: str, fails: Callable[[str], bool]) -> str:
    """Leave elements and attributes out, one after the other, as long as a model still fails.

    Parameters
    ----------
    xml : str
        MJCF that fails.
    fails : callable
        Whether MJCF fails in the same way; false for what cannot be loaded.

    Returns
    -------
    str
        MJCF of which nothing more can be left out, or the same if it does not fail.
    """
    root = ET.fromstring(xml)

    def still(change: Callable[[], None], undo: Callable[[], None]) -> bool:
        change()
        if fails(ET.tostring(root, encoding="unicode")):
            return True
        undo()
        return False

    smaller = True
    while smaller:
        smaller = False
        for parent in list(root.iter()):
            for child in list(parent):
                at = list(parent).index(child)
                smaller |= still(lambda: parent.remove(child), lambda: parent.insert(at, child))  # noqa: B023
            for name, value in list(parent.attrib.items()):
                smaller |= still(lambda: parent.attrib.__delitem__(name), lambda: parent.set(name, value))  # noqa: B023
    ET.indent(root)
    return ET.tostring(root, encoding="unicode")
