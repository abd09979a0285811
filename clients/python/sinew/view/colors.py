"""Colours that the colour-blind tell apart, as RGB from 0 to 255."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sinew._colors import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, rgb

__all__ = ["ARROW", "GHOST", "TENDON", "activation_colors", "term_color"]

Colors = NDArray[np.uint8]

GHOST = (60, 145, 205)
ARROW = rgb(ORANGE)
TENDON = (150, 150, 150)
"""Of a tendon that no actuator pulls."""

# In the order in which terms take them.
_TERMS = tuple(map(rgb, (VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY)))

# From at rest (light, blue) to fully active (dark, red): lightness alone tells them apart, too.
_ACTIVATION = np.array([[120, 145, 180], [225, 125, 85], [165, 15, 35]], dtype=np.float64)


def term_color(number: int) -> tuple[int, int, int]:
    """Return the colour of a term of the cost by its number."""
    return _TERMS[number % len(_TERMS)]


def activation_colors(activation: NDArray[np.float64]) -> Colors:
    """Return colours (n, 3) of activations (n,) from 0 to 1."""
    stops = np.linspace(0, 1, len(_ACTIVATION))
    return np.stack([np.interp(activation, stops, channel) for channel in _ACTIVATION.T], axis=1).astype(np.uint8)
