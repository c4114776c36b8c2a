// The kind of a word, from a short list; the reader can change it. A word that is not listed has no kind.
export const KINDS = ["article", "noun", "verb", "adjective"];
export const NO_KIND = "other";

const LISTED = {
  article: "the a an this that these those my your his her its our their every each some no",
  noun: "cat dog cats dogs mouse horse fish bird fox owl bee cow hen man woman child boy girl king queen teacher student baby friend people person lion tiger wolf bear snake house car tree river city book ball bone food water milk tea bread apple story word words name game day night morning sun moon rain work home school door table chair hand head eye paris london",
  verb: "chased chases chase bites bite bit saw see sees ate eat eats likes like liked loves love loved is are was were be has have had runs run ran sleeps sleep slept fed feeds feed asked asks ask told tells tell gave gives give made make makes wrote write writes read reads fled flees scared scares scare walked walks walk said say says wants want wanted knows know knew barked barks",
  adjective: "big small black white red green blue old young good bad happy sad fast slow hot cold new little tall short hungry angry tired lazy quick brown grey kind clever brave",
};

const KIND_OF = new Map(Object.entries(LISTED).flatMap(([kind, words]) => words.split(" ").map((word) => [word, kind])));
const chosen = new Map(); // by word: the kind that the reader chose

const bare = (word) => word.toLocaleLowerCase("en").replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");

export const kindOf = (word) => chosen.get(word) ?? KIND_OF.get(bare(word)) ?? NO_KIND;

export const chooseKind = (word, kind) => chosen.set(word, kind);
