// A JSON file of the reader's own: read here, sent nowhere.
import { byId, visible } from "./dom.js";

const LARGEST = 20_000_000; // [bytes]

// check(data) gives a sentence about what is wrong, or null. What is embedded in the page is shown at once.
export function loadable({ input, embedded, note, check, show }) {
  const said = byId(note);
  const take = (text, name) => {
    let data;
    try {
      data = JSON.parse(text);
    } catch {
      return refuse(said, `${visible(name)} is not JSON.`);
    }
    if (data === null) return undefined;
    const wrong = check(data);
    if (wrong) return refuse(said, `${visible(name)}: ${visible(wrong)}`);
    try {
      show(data);
    } catch {
      return refuse(said, `${visible(name)}: a field is missing or is not what the schema says.`);
    }
    said.className = "quiet";
    said.textContent = name ? `Shown: ${visible(name)}` : "";
    return undefined;
  };
  take(byId(embedded).textContent, "");
  byId(input).addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    if (file.size > LARGEST) refuse(said, `${visible(file.name)} is larger than ${LARGEST / 1e6} MB.`);
    else take(await file.text(), file.name);
  });
}

function refuse(said, text) {
  said.className = "problem";
  said.textContent = text;
}

export function schemaProblem(data, what) {
  if (typeof data !== "object" || Array.isArray(data)) return `expected ${what}, an object; this is something else.`;
  if (data.schema !== 1) return `expected schema version 1 of ${what}, got ${JSON.stringify(data.schema) ?? "none"}; write it with this version of orderproof.`;
  return null;
}
