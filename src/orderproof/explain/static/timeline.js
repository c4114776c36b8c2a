// A picture in time: play it again, or scrub it with the mouse or the arrow keys.
import { el } from "./dom.js";
import { tween } from "./motion.js";

const STAGE_MS = 1300; // [ms] of one stage when it plays

// stages: a text for each whole time 0, 1, 2, ...; paint(t) draws any time between the first and the last.
export function timeline({ id, label, stages, paint, start = 0, step = 0.05 }) {
  const last = stages.length - 1;
  const caption = el("p", { class: "stage", role: "status", id: `${id}-stage` });
  const input = el("input", { type: "range", id, min: 0, max: last, step, value: start, "aria-label": label, oninput: () => show(Number(input.value)) });
  const button = el("button", { type: "button", class: "play", id: `${id}-play`, onclick: play }, "Play");
  function show(t) {
    input.value = t;
    const text = stages[Math.min(Math.floor(t + 1e-9), last)];
    input.setAttribute("aria-valuetext", text);
    if (caption.textContent !== text) caption.textContent = text;
    button.textContent = t >= last ? "Replay" : "Play";
    paint(t);
  }
  function play() {
    const from = Number(input.value) >= last ? 0 : Number(input.value);
    tween(id, (t) => show(from + (last - from) * t), STAGE_MS * (last - from), "steady");
  }
  return { element: el("div", { class: "timeline" }, el("div", { class: "scrub" }, button, input), caption), show, play };
}
