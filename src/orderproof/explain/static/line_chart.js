// Lines with bands, a dashed ceiling and a shaded range, as SVG.
import { el, formatFixed } from "./dom.js";

const WIDTH_PX = 520, HEIGHT_PX = 300;
const LEFT = 70, RIGHT = 24, TOP = 12, BOTTOM = 46;

function ticks(low, high) {
  const raw = (high - low) / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

function range(values, least) {
  const low = Math.min(...values, ...least), high = Math.max(...values, ...least);
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

export function lineChart({ title, xLabel, yLabel, series, ceiling = [], shaded = null }) {
  const every = [...series.flatMap(({ points }) => points), ...ceiling];
  if (!every.length) return el("figure", { class: "chart" }, el("figcaption", {}, title), el("p", { class: "quiet" }, "nothing was measured"));
  const [left, right] = range(every.map(({ x }) => x), shaded ?? []);
  // Shares have the range 0 to 1; other measures the range of their values.
  const heights = every.flatMap(({ y, low, high }) => [y, low ?? y, high ?? y]);
  const [bottom, top] = range(heights, heights.every((y) => y >= 0 && y <= 1) ? [0, 1] : []);
  const at = {
    x: (x) => Number((LEFT + ((x - left) / (right - left)) * (WIDTH_PX - LEFT - RIGHT)).toFixed(2)),
    y: (y) => Number((HEIGHT_PX - BOTTOM - ((y - bottom) / (top - bottom)) * (HEIGHT_PX - TOP - BOTTOM)).toFixed(2)),
  };
  const description = `${title}: ${yLabel} by ${xLabel}, ${series.length} ${series.length === 1 ? "line" : "lines"}`;
  return el("figure", { class: "chart" },
    el("figcaption", {}, title),
    el("svg", { viewBox: `0 0 ${WIDTH_PX} ${HEIGHT_PX}`, role: "img", "aria-label": description },
      shaded ? trainedBand(shaded, at) : null, axes(at, [left, right], [bottom, top], xLabel, yLabel),
      series.map((line) => lineElement(line, at)),
      ceiling.length ? ceilingElement(ceiling, at, right) : null));
}

function trainedBand([from, to], at) {
  const wide = Math.max(at.x(to) - at.x(from), 14);
  const start = at.x(from) === at.x(to) ? at.x(from) - 7 : at.x(from);
  return el("g", {}, el("rect", { class: "trained", x: start, width: wide, y: TOP, height: HEIGHT_PX - TOP - BOTTOM }, el("title", {}, `trained: ${from} to ${to}`)),
    el("text", { class: "tick", x: start + 4, y: HEIGHT_PX - BOTTOM - 8 }, "trained"));
}

function axes(at, [left, right], [bottom, top], xLabel, yLabel) {
  const across = ticks(left, right).map((x) => el("g", {}, el("line", { class: "grid", x1: at.x(x), x2: at.x(x), y1: TOP, y2: HEIGHT_PX - BOTTOM }),
    el("text", { class: "tick", x: at.x(x), y: HEIGHT_PX - BOTTOM + 18, "text-anchor": "middle" }, x.toLocaleString("en"))));
  const up = ticks(bottom, top).map((y) => el("g", {}, el("line", { class: "grid", x1: LEFT, x2: WIDTH_PX - RIGHT, y1: at.y(y), y2: at.y(y) }),
    el("text", { class: "tick", x: LEFT - 6, y: at.y(y) + 5, "text-anchor": "end" }, String(y))));
  return el("g", {}, across, up,
    el("text", { class: "tick", x: (LEFT + WIDTH_PX - RIGHT) / 2, y: HEIGHT_PX - 8, "text-anchor": "middle" }, xLabel),
    el("text", { class: "tick", transform: `translate(14 ${(HEIGHT_PX - BOTTOM + TOP) / 2}) rotate(-90)`, "text-anchor": "middle" }, yLabel));
}

function lineElement({ label, kind, points }, at) {
  const sorted = points.slice().sort((a, b) => a.x - b.x);
  const path = (key, list) => list.map((point) => `${at.x(point.x)} ${at.y(point[key])}`).join(" L ");
  const band = `M ${path("high", sorted)} L ${path("low", sorted.slice().reverse())} Z`;
  const bars = sorted.map((point) => el("line", { class: `line k${kind} whisker`, x1: at.x(point.x), x2: at.x(point.x), y1: at.y(point.low), y2: at.y(point.high) }));
  return el("g", { class: "series", "data-label": label },
    sorted.length > 1 ? el("path", { class: `band k${kind}`, d: band }) : bars,
    sorted.length > 1 ? el("path", { class: `line k${kind}`, d: `M ${path("y", sorted)}` }) : null,
    sorted.map((point) => el("circle", { class: `dot k${kind}`, cx: at.x(point.x), cy: at.y(point.y), r: sorted.length > 30 ? 1.5 : 3.5 },
      el("title", {}, `${label}, ${point.x}: ${formatFixed(point.y)} (${formatFixed(point.low)} to ${formatFixed(point.high)})`))));
}

function ceilingElement(ceiling, at, right) {
  const points = ceiling.length > 1 ? ceiling : [{ ...ceiling[0], x: ceiling[0].x - 0.5 }, { ...ceiling[0], x: Math.min(ceiling[0].x + 0.5, right) }];
  return el("path", { class: "ceiling", d: `M ${points.map(({ x, y }) => `${at.x(x)} ${at.y(y)}`).join(" L ")}` },
    el("title", {}, `exact ceiling ${formatFixed(ceiling[0].y)}`));
}
