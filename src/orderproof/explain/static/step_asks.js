// What a query asks and a key offers, on the reader's words: a head that can be read, with each weight opened by a click.
import { choice } from "./choice.js";
import { byId, el, fill, formatFixed, isolatedWord } from "./dom.js";
import { heatmap, strip } from "./heatmap.js";
import { KIND_WEIGHTS, inWords, kindHead, kindRows } from "./kind_head.js";
import { openedWeight, weightButton } from "./opened_weight.js";
import { state, subscribe } from "./state.js";
import { wordClass } from "./word_chips.js";
import { KINDS, NO_KIND, chooseKind, kindOf } from "./word_kinds.js";

let query = 2; // the word whose query is followed
let opened = null; // the word whose weight is open

const run = () => kindHead(kindRows(state.words, state.words.map(kindOf)));

// The kind that gets most of the weight of the query, and the word whose query it is.
export function mostAsked() {
  const { a } = run();
  const total = (kind) => state.words.reduce((sum, word, n) => sum + (kindOf(word) === kind ? a[query][n] : 0), 0);
  return { word: state.words[query], kind: [...KINDS, NO_KIND].reduce((best, kind) => (total(kind) > total(best) ? kind : best)) };
}

export function asksStep() {
  let words = state.words;
  subscribe(() => {
    if (words === state.words) return;
    words = state.words;
    query = Math.min(2, words.length - 1);
    opened = null;
  });
  const features = [...KINDS, "word 1", "word 2", "word 3", "word 4"];
  fill(byId("asks-matrices"), Object.entries(KIND_WEIGHTS).map(([name, values]) => heatmap(`W_${{ query: "q", key: "k", value: "v" }[name]}`, values, { rows: features, label: `weights of the ${name}`, id: `asks-w-${name}` })));

  function draw() {
    const { q, k, s, a, z } = run();
    const hadFocus = document.activeElement?.id;
    fill(byId("asks-controls"), choice({ name: "asks-query", legend: "The query of", options: state.words.map((word, place) => [place, isolatedWord(word)]), value: query, change: (value) => { query = value; draw(); focusOn(`#asks-query input[value="${value}"]`); } }));
    fill(byId("asks-question"), el("b", {}, isolatedWord(state.words[query])), ` is ${withArticle(kindOf(state.words[query]))}. Its query asks for: `, el("b", { id: "asks-for" }, inWords(q[query])), ".");
    fill(byId("asks-keys"), state.words.map((word, n) => el("li", {},
      el("span", { class: `chip small ${wordClass(n)}` }, isolatedWord(word)), kindMenu(word, n),
      el("span", { class: "offer" }, el("span", { class: "quiet" }, "key offers "), inWords(k[n])),
      weightButton({ weight: a[query][n], open: opened === n, label: `the weight of ${word}`, toggle: () => { opened = opened === n ? null : n; draw(); focusOn(`#asks-keys li:nth-child(${n + 1}) .weight`); } }),
      el("span", { class: "share" }, formatFixed(a[query][n])),
      opened === n ? openedWeight({ words: state.words, n, names: KINDS, q: q[query], k: k[n], row: s[query], weight: a[query][n] }) : null)));
    fill(byId("asks-output"), strip(z[query], { id: "asks-sum", name: "output", label: `output of ${state.words[query]}: the sum of weight × value` }));
    if (hadFocus?.startsWith("asks-kind-")) byId(hadFocus)?.focus();
  }

  function kindMenu(word, n) {
    const menu = el("select", { id: `asks-kind-${n}`, "aria-label": `kind of ${word}`, onchange: () => { chooseKind(word, menu.value); draw(); } },
      [...KINDS, NO_KIND].map((kind) => el("option", { value: kind, selected: kind === kindOf(word) }, kind)));
    return menu;
  }
  return draw;
}

const focusOn = (selector) => document.querySelector(selector)?.focus();

const withArticle = (kind) => (kind === NO_KIND ? "a word without a kind" : `${/^[aeiou]/.test(kind) ? "an" : "a"} ${kind}`);
