// The story: one step at a time, with next and back, arrow keys, a list of contents and addresses such as #attention.
import { byId, el, fill } from "./dom.js";
import { subscribe, swapIfUntouched } from "./state.js";

const steps = [...document.querySelectorAll("main > section")];
let current = null;

// render: by the id of a step, what draws it; a step without one is text.
export function startStory(render) {
  fill(byId("contents-list"), chapters().map(([chapter, own]) => [
    el("li", { class: "chapter" }, el("h3", {}, chapter), el("ol", {}, own.map((step) => el("li", {}, el("a", { href: `#${step.id}` }, title(step)))))),
  ]));
  byId("back").addEventListener("click", () => go(-1));
  byId("next").addEventListener("click", () => go(1));
  document.addEventListener("keydown", onKeyDown);
  window.addEventListener("hashchange", () => show(render));
  for (const link of byId("contents-list").querySelectorAll("a")) link.addEventListener("click", () => (byId("contents").open = false));
  show(render);
  subscribe(() => render[current.id]?.());
}

const title = (step) => step.querySelector("h2").textContent;

function chapters() {
  const found = new Map();
  for (const step of steps) found.set(step.dataset.chapter, [...(found.get(step.dataset.chapter) ?? []), step]);
  return [...found];
}

// True if the address is that of a step after the first.
export const startsLater = () => steps.indexOf(wanted()) > 0;

const wanted = () => steps.find((step) => step.id === decodeHash(location.hash)) ?? steps[0];

function decodeHash(hash) {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return "";
  }
}

function go(by) {
  const next = steps[steps.indexOf(current) + by];
  if (next) location.hash = next.id;
}

// Arrow keys belong to a field, a choice, a word or a matrix first.
function onKeyDown(event) {
  if (event.key === "Escape" && byId("contents").open) {
    byId("contents").open = false;
    byId("contents").querySelector("summary").focus();
  }
  const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -1, PageDown: 1 }[event.key];
  if (!by || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  if (event.target.closest?.("input, select, textarea, summary, [role=grid], .moving")) return;
  if (event.key.startsWith("Page") && canScroll(by)) return;
  event.preventDefault();
  go(by);
}

// Page keys, which presenters send, read a long step to its end first.
function canScroll(by) {
  const { scrollTop, scrollHeight, clientHeight } = document.documentElement;
  return by > 0 ? scrollTop + clientHeight < scrollHeight - 2 : scrollTop > 0;
}

function show(render) {
  const before = current;
  current = wanted();
  const index = steps.indexOf(current);
  for (const step of steps) step.hidden = step !== current;
  const place = current.querySelector(".words-here");
  if (place) place.append(byId("words"));
  byId("words").hidden = !place;
  byId("first-label").textContent = "single" in current.dataset ? "Words" : "First"; // the style hides the second
  byId("other-words").open = false;
  if (index > 0) swapIfUntouched();
  for (const link of byId("contents-list").querySelectorAll("a")) {
    if (link.hash === `#${current.id}`) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
  }
  for (const [id, other] of [["back", steps[index - 1]], ["next", steps[index + 1]]]) {
    byId(id).disabled = !other;
    byId(id).title = other ? title(other) : "";
  }
  byId("step-count").textContent = `${index + 1} of ${steps.length}`;
  byId("progress").style.setProperty("--v", (index + 1) / steps.length);
  document.title = `${title(current)} · orderproof`;
  render[current.id]?.();
  if (!before || before === current) return;
  byId("announcement").textContent = `Step ${index + 1} of ${steps.length}: ${title(current)}`;
  window.scrollTo(0, 0);
}
