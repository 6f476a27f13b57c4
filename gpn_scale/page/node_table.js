"use strict";
// The table of nodes: search, filters, order, pages, export. Every text from data is set as text.
const nodeData = JSON.parse(document.getElementById("node-data").textContent);
const rowCount = nodeData.predicted.length;
const pageSize = 25;
const byId = (id) => document.getElementById(id);

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
function badge(label) {
  const className = label < 0 ? "badge unnamed" : `badge k${label % 7}`;
  return element("span", {className}, label < 0 ? "?" : nodeData.letters[label]);
}
function className(label) {
  const parts = [badge(label), " "];
  if (label >= 0) parts.push(element("bdi", {}, nodeData.classes[label]));
  return element("span", {className: "class-name"}, ...parts);
}
// A name leads to the node's entry, if the node is listed.
function nodeLink(index) {
  const name = element("bdi", {}, nodeData.names[index]);
  return index < rowCount ? element("a", {href: `#node-${index}`}, name) : name;
}
function numberText(value, digits = 2) {
  if (value === null) return "n.a.";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) {
    const [head, exponent] = value.toExponential(digits - 1).split("e");
    const raised = [...String(Number(exponent))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
    return `${head}·10${raised.join("")}`;
  }
  const decimals = Math.max(digits - 1 - Math.floor(Math.log10(size)), 0);
  return value.toLocaleString("en", {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
}
const percentText = (value) => `${(100 * value).toFixed(1)} %`;
const countsText = (log) => (log <= -6 ? "< 10⁻⁶" : numberText(10 ** log));
const splitText = (row) => nodeData.splits[nodeData.split[row]] ?? "none";
const markText = (row) => nodeData.marks[nodeData.mark[row]];
const reasonText = (row) => nodeData.reasons[nodeData.reason[row]];
const classText = (label) => (label < 0 ? "" : nodeData.classes[label]);

// A column has a title, a value to order rows by and to export, and a cell.
const columns = [
  {title: "node", value: (row) => nodeData.names[row], cell: nodeLink},
  {
    title: "predicted",
    value: (row) => classText(nodeData.predicted[row]),
    cell: (row) => className(nodeData.predicted[row]),
  },
  {
    title: "probability",
    value: (row) => nodeData.probability[row],
    cell: (row) => percentText(nodeData.probability[row]),
  },
  {
    title: "evidence",
    value: (row) => Number((10 ** nodeData.evidence[row]).toPrecision(4)),
    cell: (row) => countsText(nodeData.evidence[row]),
  },
  {
    title: "label",
    value: (row) => classText(nodeData.label[row]),
    cell: (row) => className(nodeData.label[row]),
  },
  {title: "split", value: splitText, cell: splitText},
];
if (nodeData.p_known !== null) {
  columns.splice(
    3,
    0,
    {
      title: "p known",
      value: (row) => nodeData.p_known[row],
      cell: (row) => numberText(nodeData.p_known[row]),
    },
    {title: "reason", value: reasonText, cell: reasonText},
  );
}
if (nodeData.marks.length > 1) columns.push({title: "marked", value: markText, cell: markText});

const state = {order: null, descending: false, page: 0, ranges: {}, area: null, selected: [], picked: -1};
const filters = byId("node-filters");
const searched = nodeData.names.slice(0, rowCount).map((name) => name.toLowerCase());
const listeners = [];

// Returns a test of rows for what the filters and the views select.
function selection() {
  const chosen = Object.fromEntries(new FormData(filters));
  const tests = [];
  const search = (chosen.search ?? "").trim().toLowerCase();
  if (search) tests.push((row) => searched[row].includes(search));
  if (chosen.predicted) tests.push((row) => nodeData.predicted[row] === Number(chosen.predicted));
  if (chosen.kind) tests.push((row) => nodeData.kinds[nodeData.reason[row]] === chosen.kind);
  if (chosen.split) tests.push((row) => nodeData.split[row] === Number(chosen.split));
  if (chosen.labelled === "no") tests.push((row) => nodeData.label[row] < 0);
  if (chosen.labelled === "yes") tests.push((row) => nodeData.label[row] >= 0);
  if (chosen.labelled === "wrong") {
    tests.push((row) => nodeData.label[row] >= 0 && nodeData.label[row] !== nodeData.predicted[row]);
  }
  if (chosen.mark) tests.push((row) => nodeData.mark[row] > 0 === (chosen.mark === "any"));
  for (const [column, [low, high]] of Object.entries(state.ranges)) {
    tests.push((row) => nodeData[column][row] >= low && nodeData[column][row] <= high);
  }
  if (state.area !== null) tests.push(state.area);
  return (row) => tests.every((test) => test(row));
}
function ordered(rows) {
  if (state.order === null) return rows;
  const key = columns[state.order].value;
  const keys = rows.map((row) => [key(row), row]);
  const sign = state.descending ? -1 : 1;
  const compare = typeof keys[0]?.[0] === "string" ? new Intl.Collator("en", {numeric: true}).compare : (a, b) => a - b;
  keys.sort((a, b) => sign * compare(a[0], b[0]) || a[1] - b[1]);
  return keys.map(([, row]) => row);
}
function update() {
  const passes = selection();
  const rows = [];
  for (let row = 0; row < rowCount; row += 1) if (passes(row)) rows.push(row);
  state.selected = ordered(rows);
  state.page = 0;
  byId("node-count").textContent =
    `${rows.length.toLocaleString("en")} of ${rowCount.toLocaleString("en")} nodes are selected.`;
  showPage();
  for (const listener of listeners) listener(state.selected);
}
function showHead() {
  const cells = columns.map((column, place) => {
    const isOrder = state.order === place;
    const button = element("button", {type: "button", className: "order"}, column.title);
    if (isOrder) button.append(state.descending ? " ▼" : " ▲");
    button.addEventListener("click", () => {
      state.descending = isOrder && !state.descending;
      state.order = place;
      update();
      byId("node-table").querySelectorAll("thead button")[place].focus();
    });
    const cell = element("th", {scope: "col"}, button);
    cell.setAttribute("aria-sort", isOrder ? (state.descending ? "descending" : "ascending") : "none");
    return cell;
  });
  byId("node-table").tHead.replaceChildren(element("tr", {}, ...cells));
}
function showPage() {
  showHead();
  const begin = state.page * pageSize;
  const shown = state.selected.slice(begin, begin + pageSize);
  const lines = shown.map((row) => {
    const [name, ...others] = columns.map((column) => column.cell(row));
    const cells = others.map((content, place) => {
      const cell = element("td", {}, content);
      cell.dataset.title = columns[place + 1].title;
      return cell;
    });
    return element("tr", {className: row === state.picked ? "picked" : ""}, element("th", {scope: "row"}, name), ...cells);
  });
  byId("node-table").tBodies[0].replaceChildren(...lines);
  const pages = Math.max(Math.ceil(state.selected.length / pageSize), 1);
  byId("node-page").textContent = `page ${state.page + 1} of ${pages.toLocaleString("en")}`;
  byId("node-previous").disabled = state.page === 0;
  byId("node-next").disabled = state.page + 1 >= pages;
}

// A text that a spreadsheet would take for a formula gets an apostrophe in front.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  let text = String(value);
  if (typeof value === "string" && /^[=+\-@\t\r\n]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
function csvText(rows) {
  const parts = nodeData.parts.map((part) => ({
    title: `p ${part}`,
    value: (row) => nodeData.p_parts[part][row],
  }));
  const all = [...columns, ...parts];
  const lines = [all.map((column) => csvCell(column.title))];
  for (const row of rows) lines.push(all.map((column) => csvCell(column.value(row))));
  return `${lines.map((line) => line.join(",")).join("\r\n")}\r\n`;
}

filters.addEventListener("submit", (event) => event.preventDefault());
filters.addEventListener("input", (event) => {
  if (!["position", "colour"].includes(event.target.name)) update();
});
byId("node-previous").addEventListener("click", () => {
  state.page -= 1;
  showPage();
});
byId("node-next").addEventListener("click", () => {
  state.page += 1;
  showPage();
});
byId("node-export").addEventListener("click", () => {
  // The mark at the beginning tells spreadsheets that the text is UTF-8.
  const file = new Blob(["\ufeff", csvText(state.selected)], {type: "text/csv;charset=utf-8"});
  const link = element("a", {href: URL.createObjectURL(file), download: "nodes.csv"});
  link.click();
  URL.revokeObjectURL(link.href);
});
