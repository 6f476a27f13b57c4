"use strict";
// Shows the title of a mark in a plot on touch as well as under the pointer.
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
for (const title of document.querySelectorAll("svg.plot > * title")) {
  title.parentElement.dataset.tip = title.textContent;
  title.remove();
}
document.addEventListener("pointerover", (event) => {
  const mark = event.target.closest("[data-tip]");
  tip.hidden = mark === null;
  if (mark === null) return;
  tip.textContent = mark.dataset.tip;
  const left = Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(left, 8)}px`;
  tip.style.top = `${Math.max(event.clientY - tip.offsetHeight - 12, 8)}px`;
});
window.addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
