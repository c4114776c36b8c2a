// Panel 2: what Q, K and V are, and why rows that are ordered do not carry order.
import { kindOf } from "./chips.js";
import { byId, el, fill, fixed, wordOf } from "./dom.js";
import { SIZE, head, headVectors } from "./head.js";
import { permuted } from "./laws.js";
import { matrix } from "./matrix.js";
import { movedWords, state, subscribe } from "./state.js";

let asked = 0; // the word whose query is followed

export function qkvPanel() {
  let words = null;
  subscribe(() => {
    if (words !== state.words) asked = 0;
    words = state.words;
    draw();
  });
}

function draw() {
  const places = state.words.map((_, i) => i);
  const x = headVectors(state.words);
  const first = head(x), second = head(permuted(x, state.order));
  const shown = (name) => matrix(name === "x" ? "X" : `${name.toUpperCase()} = X W_${name}`, first[name], { rows: places, id: `qkv-${name}` });
  fill(byId("qkv-words"), shown("x"));
  fill(byId("qkv-matrices"), ["q", "k", "v"].map(shown));
  fill(byId("asked"), el("legend", {}, "Follow the query of"), el("div", { class: "segments" }, places.map(radio)));
  fill(byId("followed"), following("First sentence", places, first, "followed-first"), following("Second sentence", state.order, second, "followed-second"));
  const still = movedWords().every((word, m) => word === state.words[m]);
  byId("qkv-moral").textContent = still
    ? "Move a word in panel 1: the rows here will change places, and the sum will not."
    : "The rows stand in another order. Each holds the same query, key and value as before, because each was made of its own word alone, and a sum does not ask in what order its terms come.";
}

function radio(place) {
  const input = el("input", { type: "radio", name: "asked", value: place, checked: place === asked, onchange: () => {
    asked = place;
    draw();
    byId("asked").querySelector("input:checked").focus();
  } });
  return el("label", {}, input, el("span", {}, wordOf(state.words[place])));
}

// One query against every key: score, weight, and what each word contributes to the sum.
function following(title, order, run, id) {
  const m = order.indexOf(asked);
  const tag = (place) => el("span", { class: `tag ${kindOf(place)}` }, wordOf(state.words[place]));
  const numbers = (values) => values.map((value) => el("td", { class: "number" }, fixed(value)));
  const rows = order.map((place, n) =>
    el("tr", { "data-kind": kindOf(place) },
      el("th", { scope: "row" }, `${n + 1} `, tag(place)),
      numbers([run.s[m][n], run.a[m][n], ...run.v[n].map((value) => run.a[m][n] * value)]),
    ),
  );
  const sum = el("tr", { class: "sum" }, el("th", { scope: "row" }, "sum"), el("td"), numbers([run.a[m].reduce((a, b) => a + b, 0), ...run.z[m]]));
  const head_ = ["row", "score", "weight", el("span", {}, "weight × value")];
  return el("figure", { class: "matrix", id },
    el("figcaption", {}, `${title}: `, tag(asked), ` asks from row ${m + 1}`),
    el("div", { class: "scroll" }, el("table", { class: "numbers" },
      el("thead", {}, el("tr", {}, head_.map((text, i) => el("th", { scope: "col", colspan: i === 3 ? SIZE : null }, text)))),
      el("tbody", {}, rows, sum),
    )),
  );
}
