"use strict";
// Shows the description of a mark in a chart on touch as well as under the pointer.
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
function showTip(event, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const left = Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(left, 8)}px`;
  tip.style.top = `${Math.max(event.clientY - tip.offsetHeight - 12, 8)}px`;
}
document.addEventListener("pointerover", (event) => {
  const mark = event.target.closest(".plot [aria-label], .plot [data-tip]");
  showTip(event, mark && (mark.dataset.tip || mark.getAttribute("aria-label")));
});
window.addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
