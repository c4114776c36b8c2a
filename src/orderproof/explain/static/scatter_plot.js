// Outputs as points by their first two features: thousands of them on a canvas, with axes and a text alternative.
import { el } from "./dom.js";

const WIDE = 480, HIGH = 300, LEFT = 64, BOTTOM = 50, EDGE = 14;
const FONT = "17px system-ui, sans-serif";

function axisLimits(outputs) {
  const axis = (f) => {
    const values = outputs.map((output) => output[f]);
    const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
    const room = Math.max((high - low) * 0.06, 0.02);
    return [low - room, high + room];
  };
  return [axis(0), axis(1)];
}

const across = (x, left, right) => LEFT + ((x - left) / (right - left)) * (WIDE - LEFT - EDGE);
const up = (y, low, high) => HIGH - BOTTOM - ((y - low) / (high - low)) * (HIGH - BOTTOM - EDGE);

function drawAxes(pen, style, { left, right, low, high }) {
  pen.strokeStyle = style.getPropertyValue("--quiet");
  pen.strokeRect(LEFT - 0.5, EDGE - 0.5, WIDE - LEFT - EDGE, HIGH - BOTTOM - EDGE);
  pen.fillStyle = style.getPropertyValue("--ink");
  pen.font = FONT;
  const text = (value, x, y, align) => {
    pen.textAlign = align;
    pen.fillText(value, x, y);
  };
  text(left.toFixed(2), LEFT, HIGH - BOTTOM + 20, "left");
  text(right.toFixed(2), WIDE - EDGE, HIGH - BOTTOM + 20, "right");
  text("feature 1 of the mean", (LEFT + WIDE - EDGE) / 2, HIGH - 8, "center");
  text(high.toFixed(2), LEFT - 6, EDGE + 12, "right");
  text(low.toFixed(2), LEFT - 6, HIGH - BOTTOM, "right");
  pen.save();
  pen.translate(20, (HIGH - BOTTOM + EDGE) / 2);
  pen.rotate(-Math.PI / 2);
  text("feature 2", 0, 0, "center");
  pen.restore();
}

function render(outputs, different, [[left, right], [low, high]], label) {
  const canvas = el("canvas", { width: WIDE * 2, height: HIGH * 2, role: "img", "aria-label": label });
  const paint = () => {
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    pen.setTransform(2, 0, 0, 2, 0, 0);
    pen.clearRect(0, 0, WIDE, HIGH);
    drawAxes(pen, style, { left, right, low, high });
    pen.fillStyle = style.getPropertyValue("--link");
    const radius = different > 2000 ? 1.2 : different > 100 ? 2.5 : 5;
    for (const [x, y] of outputs) {
      pen.beginPath();
      pen.arc(across(x, left, right), up(y, low, high), radius, 0, 2 * Math.PI);
      pen.fill();
    }
  };
  paint();
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", function again() {
    if (canvas.isConnected) paint();
    else scheme.removeEventListener("change", again);
  });
  return canvas;
}

export const scatterPlot = { axisLimits, render };
