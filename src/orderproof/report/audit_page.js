"use strict";
// Opens and closes proofs; nothing here reads a text of the model or writes markup.
const proofModules = () => document.querySelectorAll("#proof details");
for (const button of document.querySelectorAll("button[data-open]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    for (const module of proofModules()) module.open = button.dataset.open === "true";
  });
}
