// A JSON file that the reader chooses: it is read in the page and sent nowhere.
import { byId, escapeControls } from "./dom.js";

const MAX_FILE_BYTES = 20_000_000; // [bytes]

// check(data) returns the problem as a sentence, or null. Data embedded in the page are shown at once.
export function fileInput({ input, embedded, note, check, show }) {
  const status = byId(note);
  const take = (text, name) => {
    let data;
    try {
      data = JSON.parse(text);
    } catch {
      return showProblem(status, `${escapeControls(name)} is not JSON.`);
    }
    if (data === null) return undefined;
    const problem = check(data);
    if (problem) return showProblem(status, `${escapeControls(name)}: ${escapeControls(problem)}`);
    try {
      show(data);
    } catch {
      return showProblem(status, `${escapeControls(name)}: a field is missing or does not match the schema.`);
    }
    status.className = "quiet";
    status.textContent = name ? `Shown: ${escapeControls(name)}` : "";
    return undefined;
  };
  take(byId(embedded).textContent, "");
  byId(input).addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    if (file.size > MAX_FILE_BYTES) showProblem(status, `${escapeControls(file.name)} is larger than ${MAX_FILE_BYTES / 1e6} MB.`);
    else take(await file.text(), file.name);
  });
}

function showProblem(status, text) {
  status.className = "problem";
  status.textContent = text;
}

export function schemaProblem(data, what, version) {
  if (typeof data !== "object" || Array.isArray(data)) return `expected ${what}, an object; got ${Array.isArray(data) ? "a list" : "a value"}.`;
  if (data.schema !== version) return `expected schema version ${version} of ${what}, got ${JSON.stringify(data.schema) ?? "none"}; write it again with this version of orderproof.`;
  return null;
}
