"use strict";
// Opens and closes what is folded, and copies scripts; nothing here reads a text of the model or writes markup.
const open = yes => { for (const folded of document.querySelectorAll("details")) folded.open = yes; };
for (const button of document.querySelectorAll("button[data-open]")) {
  button.hidden = false;
  button.addEventListener("click", () => open(button.dataset.open === "true"));
}
// The button before a script copies it.
for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", () => {
    const code = button.closest("details").querySelector("code").textContent;
    navigator.clipboard.writeText(code).then(() => { button.textContent = "Copied"; });
  });
}
addEventListener("beforeprint", () => open(true));
