"""The colour ramp of heat maps for light and dark schemes, with readable text on every step.

Contrast is (L1 + 0.05) / (L2 + 0.05) of relative luminances; level AA asks for 4.5.
Source: W3C 2018, Web Content Accessibility Guidelines 2.1, success criterion 1.4.3.
"""

from __future__ import annotations

Colour = tuple[int, int, int]

LEVELS = 21
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)
LIGHT: tuple[Colour, Colour] = ((255, 255, 255), (12, 61, 130))
DARK: tuple[Colour, Colour] = ((24, 28, 33), (150, 196, 255))


def luminance(colour: Colour) -> float:
    """Relative luminance, 0 for black and 1 for white."""
    linear = [c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: Colour, second: Colour) -> float:
    """Contrast of two colours, from 1 to 21."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def ramp(ends: tuple[Colour, Colour]) -> list[tuple[Colour, Colour]]:
    """Background and text colour of every step."""
    low, high = ends
    steps: list[tuple[Colour, Colour]] = []
    for i in range(LEVELS):
        t = i / (LEVELS - 1)
        red, green, blue = (round(a + (b - a) * t) for a, b in zip(low, high, strict=True))
        back = (red, green, blue)
        steps.append((back, BLACK if contrast(BLACK, back) > contrast(WHITE, back) else WHITE))
    return steps


def ramp_css() -> str:
    """One class a step, .h0 to .h20, for both colour schemes."""
    dark = "".join(_rule(i, *pair) for i, pair in enumerate(ramp(DARK)))
    light = "".join(_rule(i, *pair) for i, pair in enumerate(ramp(LIGHT)))
    return f"{light}@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _rule(step: int, back: Colour, ink: Colour) -> str:
    return f".h{step}{{background:{_hex(back)};color:{_hex(ink)}}}\n"


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
