// Pseudo-random numbers from a name, so that every reader sees the same.
//
//   entry(name, i) = sqrt(3) * (2 u - 1),   u = mix(hash(name) ^ mix(i + 1)) / 2^32      mean 0, variance 1
//
// hash is FNV-1a over the UTF-8 bytes of the text, mix the last step of MurmurHash3, which spreads every bit.
// Source: Fowler, Noll, Vo, "FNV Hash", IETF draft-eastlake-fnv; Appleby 2011, "MurmurHash3", fmix32.

function hash(text) {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) value = Math.imul(value ^ byte, 0x01000193);
  return value >>> 0;
}

function mix(value) {
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

// A matrix of numbers with standard deviation `scale`; the same for the same name.
export function seededMatrix(name, rows, columns, scale = 1) {
  const start = hash(name);
  const entry = (i) => Math.sqrt(3) * ((2 * mix(start ^ mix(i + 1))) / 2 ** 32 - 1) * scale;
  return Array.from({ length: rows }, (_, m) => Array.from({ length: columns }, (_, f) => entry(m * columns + f)));
}

// The vector of a word: any word has one.
export function wordVector(word, width) {
  return seededMatrix("word " + word, 1, width)[0];
}
