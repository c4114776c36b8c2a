// Outputs as points by their first two features: thousands of them on a canvas, with a text alternative.
import { el } from "./dom.js";

const WIDE = 480, HIGH = 240, EDGE = 16;

function axisLimits(outputs) {
  const axis = (f) => {
    const values = outputs.map((output) => output[f]);
    const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
    const room = Math.max((high - low) * 0.06, 0.02);
    return [low - room, high + room];
  };
  return [axis(0), axis(1)];
}

function render(outputs, different, [[left, right], [low, high]], label) {
  const canvas = el("canvas", { width: WIDE * 2, height: HIGH * 2, role: "img", "aria-label": label });
  const paint = () => {
    const pen = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    pen.setTransform(2, 0, 0, 2, 0, 0);
    pen.clearRect(0, 0, WIDE, HIGH);
    pen.strokeStyle = style.getPropertyValue("--line");
    pen.strokeRect(0.5, 0.5, WIDE - 1, HIGH - 1);
    pen.fillStyle = style.getPropertyValue("--link");
    const radius = different > 2000 ? 1.2 : different > 100 ? 2.5 : 5;
    for (const [x, y] of outputs) {
      pen.beginPath();
      pen.arc(EDGE + ((x - left) / (right - left)) * (WIDE - 2 * EDGE), HIGH - EDGE - ((y - low) / (high - low)) * (HIGH - 2 * EDGE), radius, 0, 2 * Math.PI);
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
