// The positional encodings to choose from. Each acts at one place, as in orderproof.encodings:
//
//   embed     x[m] + e(m)                        sinusoidal, learned
//   rotate    R(m) q[m],  R(n) k[n]              rotary
//   bias      q[m] . k[n] / sqrt(d) + b(m, n)    ALiBi, T5
//
// Sources: Vaswani et al. 2017, arXiv:1706.03762, section 3.5; Gehring et al. 2017, arXiv:1705.03122; Su et al. 2021,
// arXiv:2104.09864; Press et al. 2021, arXiv:2108.12409; Raffel et al. 2019, arXiv:1910.10683, section 2.1.
import { add } from "./transformer.js";
import { T5_BUCKETS } from "./model_weights.js";

const BASE = 10000;

export function sinusoids(position, width) {
  const row = [];
  for (let i = 0; i < width / 2; i++) {
    const angle = position * BASE ** ((-2 * i) / width);
    row.push(Math.sin(angle), Math.cos(angle));
  }
  return row;
}

// Pair i is features i and i + width / 2 (layout "half").
export function rotateRow(row, position) {
  const half = row.length / 2, out = row.slice();
  for (let i = 0; i < half; i++) {
    const angle = position * BASE ** ((-2 * i) / row.length);
    const [cos, sin, a, b] = [Math.cos(angle), Math.sin(angle), row[i], row[i + half]];
    out[i] = a * cos - b * sin;
    out[i + half] = b * cos + a * sin;
  }
  return out;
}

const rotated = (rows) => rows.map(rotateRow);

// The slope of a head; the number of heads is a power of two here.
export function slope(head, heads) {
  return 2 ** ((-8 * (head + 1)) / heads);
}

// The bucket of any distance n - m with 32 buckets, bidirectional: 8 exact, then logarithmic up to 128, for each direction.
// x >= 8 is in bucket 8 + j where x^8 8^j >= 8^8 128^j, that is x^8 >= 8^8 16^j, in exact integers.
export function t5Bucket(distance) {
  const x = Math.abs(distance), half = T5_BUCKETS / 2, exact = half / 2;
  let found = Math.min(x, exact);
  while (found >= exact && found < half - 1 && BigInt(x) ** 8n >= 8n ** 8n * 16n ** BigInt(found + 1 - exact)) found += 1;
  return found + (distance > 0 ? half : 0);
}

// With at most eight tokens every distance has its own bucket; keys after the query use the other half.
function bucket(distance, causal) {
  if (causal) return Math.max(-distance, 0);
  return Math.abs(distance) + (distance > 0 ? T5_BUCKETS / 2 : 0);
}

export const ENCODINGS = {
  none: { label: "none", site: "nowhere" },
  sinusoidal: {
    label: "sinusoidal",
    name: "Sinusoidal encoding",
    site: "added to the embeddings",
    embed: (x) => add(x, x.map((row, m) => sinusoids(m, row.length))),
  },
  learned: {
    label: "learned",
    name: "Learned table",
    site: "added to the embeddings",
    embed: (x, weights) => add(x, weights["learned.weight"]),
  },
  rotary: { label: "RoPE", name: "RoPE", site: "rotates queries and keys", rotate: rotated },
  alibi: {
    label: "ALiBi",
    name: "ALiBi",
    site: "added to the scores",
    bias: ({ head, heads }) => (m, n) => -slope(head, heads) * Math.abs(m - n),
  },
  t5: {
    label: "T5 bias",
    name: "T5 bias",
    site: "added to the scores",
    bias: ({ head, causal, weights }) => (m, n) => weights["t5.weight"][bucket(n - m, causal)][head],
  },
};
