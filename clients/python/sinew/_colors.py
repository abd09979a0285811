"""Colours that the colour-blind tell apart, by M. Okabe and K. Ito, and grey: of pages and of plots."""

from __future__ import annotations

__all__ = ["BLACK", "BLUE", "GREEN", "GREY", "ORANGE", "PURPLE", "SKY", "VERMILION", "rgb"]

BLACK = "#000000"
BLUE = "#0072B2"
GREEN = "#009E73"
GREY = "#999999"
ORANGE = "#E69F00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
VERMILION = "#D55E00"


def rgb(color: str) -> tuple[int, int, int]:
    """Return a colour as red, green and blue from 0 to 255."""
    red, green, blue = bytes.fromhex(color[1:])
    return red, green, blue
