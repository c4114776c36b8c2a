// Places for the words of arrows: inside the picture, off their own arrow, and never on another word.
const ALONG = [0.5, 0.35, 0.65, 0.2, 0.8], FURTHER = [0, 12, 26, 44];
const LEAST_LENGTH = 6; // of an arrow that gets its word: shorter ones look like a point
const GAP = 3; // between a word and its arrow, and between two words

let pen = null;

function measure(word, font) {
  pen ??= document.createElement("canvas").getContext("2d");
  pen.font = font;
  return pen.measureText(word);
}

// The height of a line of a font, and how far below its middle the letters stand: the reader's font is not known.
export function lineOfFont(font) {
  const { fontBoundingBoxAscent: above, fontBoundingBoxDescent: below } = measure("", font);
  return { height: above + below, baseline: (above - below) / 2 };
}

// arrows: {word, x1, y1, x2, y2}; the result has for each the share of its length and the distance from it to its left,
// and `shown`: 0 for a word without a free place, or without a visible arrow. The longest words, which have the fewest places, choose first.
// No word covers one of the boxes `kept`.
export function placeLabels(arrows, { size, font }, kept) {
  const { height } = lineOfFont(font);
  const lines = arrows.map((arrow) => ({ ...arrow, width: measure(arrow.word, font).width }));
  const places = new Array(lines.length), taken = [...kept];
  for (const i of lines.map((_, k) => k).sort((a, b) => lines[b].width - lines[a].width)) {
    const best = (lengthOf(lines[i]) < LEAST_LENGTH ? [] : candidates(lines[i], height))
      .filter(({ box }) => isInside(box, size) && !taken.some((other) => overlap(box, other)))
      .map((place) => ({ ...place, cost: place.cost + lines.filter((_, k) => k !== i).reduce((sum, line) => sum + lengthInside(line, place.box), 0) }))
      .reduce((one, two) => (one && one.cost <= two.cost ? one : two), null);
    if (best) taken.push(best.box);
    places[i] = best ? { along: best.along, away: best.away, shown: 1 } : { along: 0.5, away: 0, shown: 0 };
  }
  return places;
}

const lengthOf = ({ x1, y1, x2, y2 }) => Math.hypot(x2 - x1, y2 - y1);

export function labelPoint({ x1, y1, x2, y2 }, { along, away }) {
  const length = lengthOf({ x1, y1, x2, y2 }) || 1;
  return [x1 + (x2 - x1) * along - ((y2 - y1) / length) * away, y1 + (y2 - y1) * along + ((x2 - x1) / length) * away];
}

function candidates(line, height) {
  const length = lengthOf(line) || 1;
  const clear = (Math.abs(line.y2 - line.y1) / length) * (line.width / 2) + (Math.abs(line.x2 - line.x1) / length) * (height / 2) + GAP;
  return ALONG.flatMap((along) => FURTHER.flatMap((more) => [1, -1].map((side) => {
    const away = side * (clear + more);
    const [x, y] = labelPoint(line, { along, away });
    const box = { left: x - line.width / 2 - GAP, right: x + line.width / 2 + GAP, top: y - height / 2, bottom: y + height / 2 };
    return { along, away, box, cost: more + 30 * Math.abs(along - 0.5) };
  })));
}

const isInside = (box, size) => box.left >= 0 && box.top >= 0 && box.right <= size && box.bottom <= size;

const overlap = (one, two) => one.left < two.right && two.left < one.right && one.top < two.bottom && two.top < one.bottom;

// The length of the part of a line that is in a box.
function lengthInside({ x1, y1, x2, y2 }, box) {
  let [from, to] = [0, 1];
  for (const [start, by, low, high] of [[x1, x2 - x1, box.left, box.right], [y1, y2 - y1, box.top, box.bottom]]) {
    if (by === 0) {
      if (start < low || start > high) return 0;
    } else {
      const [near, far] = [(low - start) / by, (high - start) / by].sort((a, b) => a - b);
      from = Math.max(from, near);
      to = Math.min(to, far);
    }
  }
  return to > from ? (to - from) * Math.hypot(x2 - x1, y2 - y1) : 0;
}
