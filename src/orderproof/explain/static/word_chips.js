// A row of words that can be reordered with mouse, touch or keyboard.
import { byId, el, fill, isolatedWord } from "./dom.js";
import { slideFrom } from "./motion.js";
import { moveWords, state, subscribe } from "./state.js";

export const wordClass = (place) => `w${state.words.indexOf(state.words[place])}`; // equal words have one color

export function fixedChips(places) {
  return el("ol", { class: "words" }, places.map((place) => el("li", {}, el("span", { class: `chip ${wordClass(place)}` }, isolatedWord(state.words[place])))));
}

export function draggableChips() {
  const list = el("ol", { class: "words moving", id: "moving" });
  const chips = new Map();
  let shownWords = null;
  subscribe(() => {
    if (shownWords !== state.words) {
      shownWords = state.words;
      chips.clear();
      state.words.forEach((_, place) => chips.set(place, chip(place)));
    }
    const wanted = state.order.map((place) => chips.get(place));
    // Unchanged nodes are kept, so that the focus is kept.
    if (wanted.some((item, i) => list.children[i] !== item) || list.children.length !== wanted.length) {
      const focused = document.activeElement;
      const places = new Map(wanted.map((item) => [item, item.isConnected && item.getBoundingClientRect()]));
      fill(list, wanted);
      if (list.contains(focused)) focused.focus();
      if (!list.querySelector(".dragged")) slideFrom(wanted, (item) => places.get(item), 500);
    }
    wanted.forEach((item, i) => item.firstChild.setAttribute("aria-label", `${state.words[state.order[i]]}, place ${i + 1} of ${wanted.length}`));
  });
  return list;
}

function chip(place) {
  const button = el("button", {
    type: "button",
    class: `chip ${wordClass(place)}`,
    "data-word": place,
    "aria-describedby": "how-to-move",
    onkeydown: (event) => onKeyDown(event, place, button),
    onpointerdown: (event) => drag(event, place, button),
  }, isolatedWord(state.words[place]));
  return el("li", {}, button);
}

function moveTo(place, target) {
  const order = state.order.filter((other) => other !== place);
  order.splice(Math.max(0, Math.min(target, order.length)), 0, place);
  moveWords(order);
}

function onKeyDown(event, place, button) {
  const now = state.order.indexOf(place);
  const last = state.order.length - 1;
  const target = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
  if (target === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  moveTo(place, target);
  button.focus();
  byId("announcement").textContent = `${state.words[place]}: place ${state.order.indexOf(place) + 1} of ${last + 1}`;
}

// The chip follows the pointer; listeners are on the document because the chip moves within the list.
function drag(event, place, button) {
  if (event.button !== 0) return;
  event.preventDefault();
  button.focus();
  button.classList.add("dragged");
  const list = button.closest("ol");
  const over = (moved) => {
    const at = nearest(list, moved.clientX, moved.clientY);
    if (at !== state.order.indexOf(place)) moveTo(place, at);
  };
  const end = () => {
    button.classList.remove("dragged");
    document.removeEventListener("pointermove", over);
    document.removeEventListener("pointerup", end);
    document.removeEventListener("pointercancel", end);
  };
  document.addEventListener("pointermove", over);
  document.addEventListener("pointerup", end);
  document.addEventListener("pointercancel", end);
}

function nearest(list, x, y) {
  const apart = [...list.children].map((item) => {
    const box = item.getBoundingClientRect();
    return Math.hypot(x - (box.left + box.right) / 2, 4 * (y - (box.top + box.bottom) / 2));
  });
  return apart.indexOf(Math.min(...apart));
}
