"""What the tests measure in a browser: names, contrast, and what is cut off or moves."""

from __future__ import annotations

# The animations that run within a part of the page.
MOVING = "selector => document.getAnimations().filter(each => each.effect.target.closest(selector)).length"

# Matrices, pictures and words that are wider than the window; what scrolls on its own may be.
CUT_OFF = """() => [...document.querySelectorAll('.heat, svg, canvas, .chip, .segments span')]
  .filter(e => e.checkVisibility() && !e.closest('.scroll'))
  .flatMap(e => {
    const box = e.getBoundingClientRect();
    return box.left < -1 || box.right > innerWidth + 1 ? [e.outerHTML.slice(0, 80)] : [];
  })"""

# Tables that are wider than their place: their last column would be seen only after scrolling.
TOO_WIDE = """() => [...document.querySelectorAll('.scroll')]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
  .map(e => `${e.scrollWidth} > ${e.clientWidth}: ${e.innerText.slice(0, 60)}`)"""

# Everything that needs a name, with the name that it has.
NAMES = """() => [...document.querySelectorAll(
    "button, input, select, a[href], summary, [role=grid], svg[role=img], canvas")]
  .filter(e => e.checkVisibility())
  .map(e => [e.outerHTML.slice(0, 60),
    e.ariaLabel || e.innerText || (e.labels && e.labels.length && e.labels[0].innerText) || ""])"""

# Lines, arrows, dots and texts of pictures: their contrast with what is painted behind, and what is asked of it.
GRAPHICS_CONTRAST = """() => {
  const linear = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const canvas = Object.assign(document.createElement('canvas'), {width: 1, height: 1});
  const pen = canvas.getContext('2d', {willReadFrequently: true});
  const luminance = text => {
    pen.fillStyle = text;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b] = pen.getImageData(0, 0, 1, 1).data;
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!colour.endsWith(', 0)')) return luminance(colour);
    }
  };
  const parts = '.line, .ceiling, .tick, .hand, .arrow line, .arrow text, .score, .interval, .end, .ghost-end';
  return [...document.querySelectorAll(parts)].filter(e => e.checkVisibility()).map(e => {
    const style = getComputedStyle(e), text = e.tagName === 'text';
    const colour = text || e.matches('.score, .end') ? style.fill : style.stroke;
    const [low, high] = [luminance(colour), behind(e)].sort((a, b) => a - b);
    return [e.getAttribute('class') ?? e.tagName, (high + 0.05) / (low + 0.05), text ? 4.5 : 3];
  });
}"""
