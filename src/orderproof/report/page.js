"use strict";
// Folding only: nothing here reads a token or writes markup.
const folded = () => document.querySelectorAll("#proof details");
for (const button of document.querySelectorAll("button[data-open]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    for (const part of folded()) part.open = button.dataset.open === "true";
  });
}
