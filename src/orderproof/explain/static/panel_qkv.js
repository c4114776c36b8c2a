// Panel 2: queries, keys and values, and why ordered rows do not carry order.
import { wordClass } from "./word_chips.js";
import { byId, el, fill, formatFixed, isolatedWord } from "./dom.js";
import { HEAD_WIDTH, attentionHead, headVectors } from "./attention_head.js";
import { permuted } from "./laws.js";
import { matrixTable } from "./matrix_table.js";
import { permutedWords, state, subscribe } from "./state.js";

let queryIndex = 0; // the word whose query is followed

export function qkvPanel() {
  let words = null;
  subscribe(() => {
    if (words !== state.words) queryIndex = 0;
    words = state.words;
    draw();
  });
}

function draw() {
  const places = state.words.map((_, i) => i);
  const x = headVectors(state.words);
  const first = attentionHead(x), second = attentionHead(permuted(x, state.order));
  const shown = (name) => matrixTable(name === "x" ? "X" : `${name.toUpperCase()} = X W_${name}`, first[name], { rows: places, id: `qkv-${name}` });
  fill(byId("qkv-words"), shown("x"));
  fill(byId("qkv-matrices"), ["q", "k", "v"].map(shown));
  fill(byId("query-word"), el("legend", {}, "Follow the query of"), el("div", { class: "segments" }, places.map(radio)));
  fill(byId("followed"), attentionTable("First sentence", places, first, "followed-first"), attentionTable("Second sentence", state.order, second, "followed-second"));
  const still = permutedWords().every((word, m) => word === state.words[m]);
  byId("qkv-moral").textContent = still
    ? "Move a word in panel 1: the rows here change places, and the sum does not change."
    : "The rows have another order. Each has the same query, key and value as before, because each is computed from its own word only, and a sum does not depend on the order of its terms.";
}

function radio(place) {
  const input = el("input", { type: "radio", name: "query-word", value: place, checked: place === queryIndex, onchange: () => {
    queryIndex = place;
    draw();
    byId("query-word").querySelector("input:checked").focus();
  } });
  return el("label", {}, input, el("span", {}, isolatedWord(state.words[place])));
}

// One query against every key: score, weight, and what each word contributes to the sum.
function attentionTable(title, order, run, id) {
  const m = order.indexOf(queryIndex);
  const tag = (place) => el("span", { class: `tag ${wordClass(place)}` }, isolatedWord(state.words[place]));
  const numbers = (values) => values.map((value) => el("td", { class: "number" }, formatFixed(value)));
  const rows = order.map((place, n) =>
    el("tr", { "data-kind": wordClass(place) },
      el("th", { scope: "row" }, `${n + 1} `, tag(place)),
      numbers([run.s[m][n], run.a[m][n], ...run.v[n].map((value) => run.a[m][n] * value)]),
    ),
  );
  const sum = el("tr", { class: "sum" }, el("th", { scope: "row" }, "sum"), el("td"), numbers([run.a[m].reduce((a, b) => a + b, 0), ...run.z[m]]));
  const columns = ["row", "score", "weight", el("span", {}, "weight × value")];
  return el("figure", { class: "matrix", id },
    el("figcaption", {}, `${title}: `, tag(queryIndex), ` as the query, row ${m + 1}`),
    el("div", { class: "scroll" }, el("table", { class: "numbers" },
      el("thead", {}, el("tr", {}, columns.map((text, i) => el("th", { scope: "col", colspan: i === 3 ? HEAD_WIDTH : null }, text)))),
      el("tbody", {}, rows, sum),
    )),
  );
}
