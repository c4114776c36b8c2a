// Movement: elements slide to their new places, numbers change over time. A reader who prefers reduced motion sees the
// end at once.
const EASING = "cubic-bezier(.4, 0, .2, 1)";

const reducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// Slide elements from where they were; `from` gives the old box of each, or nothing for a new one.
export function slideFrom(elements, from, duration = 900) {
  if (reducedMotion()) return;
  for (const element of elements) {
    const old = from(element), now = element.getBoundingClientRect();
    if (old) slide(element, old.left - now.left, old.top - now.top, duration);
  }
}

function slide(element, x, y, duration) {
  if (x || y) element.animate([{ transform: `translate(${x}px, ${y}px)` }, { transform: "none" }], { duration, easing: EASING });
}

// The rows and columns of a matrix slide from their old order: place `order[m]` to place m.
export function slideCells(table, order, columns = null, duration = 900) {
  if (reducedMotion()) return;
  [...table.tBodies[0].rows].forEach((row, m) => {
    for (const cell of row.cells) {
      const n = cell.dataset.column;
      const x = columns && n !== undefined ? (columns[n] - n) * cell.offsetWidth : 0;
      const y = (order[m] - m) * row.offsetHeight;
      slide(cell, x, y, duration);
    }
  });
}

export const eased = (t) => (t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2);

// paint(t) for t from 0 to 1; a later call with the same key ends an earlier one. A `steady` pace neither speeds up nor
// slows down.
const running = new Map();

export function tween(key, paint, duration = 1100, pace = "eased") {
  cancelAnimationFrame(running.get(key));
  if (reducedMotion()) {
    paint(1);
    return;
  }
  const start = performance.now();
  const frame = (now) => {
    const t = Math.min(Math.max((now - start) / duration, 0), 1);
    paint(pace === "steady" ? t : eased(t));
    if (t < 1) running.set(key, requestAnimationFrame(frame));
  };
  paint(0);
  running.set(key, requestAnimationFrame(frame));
}
