// A filter above every long table: rows stay that contain all words of the filter.
"use strict";

const LEAST_ROWS = 12;

function filterFor(table) {
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const box = document.createElement("div");
  const label = document.createElement("label");
  const input = document.createElement("input");
  const count = document.createElement("output");
  box.className = "table-filter";
  label.append("Filter rows ", input);
  input.type = "search";
  input.placeholder = "words that a row has";
  box.append(label, count);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, place) => {
      row.hidden = !words.every((word) => texts[place].includes(word));
      shown += row.hidden ? 0 : 1;
    });
    count.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  });
  return box;
}

function addFilters() {
  for (const table of document.querySelectorAll("article table:not([class])")) {
    if (table.tBodies.length && table.tBodies[0].rows.length >= LEAST_ROWS) {
      (table.closest(".md-typeset__scrollwrap") || table).before(filterFor(table));
    }
  }
}

document.addEventListener("DOMContentLoaded", addFilters);
