// The list of nodes: order, filters, pages. The server does the work, the address keeps the choice.
import {announce, button, byId, diamond, element, note, paragraph, table} from "./elements.js";
import {addressOf, letterOf} from "./names.js";
import * as columns from "./node_columns.js";
import {ask, fill} from "./server.js";
import {countOf, countText} from "./texts.js";

const pageSize = 25;
const orderTitles = {trust: "trust", p_known: "p known", probability: "probability", degree: "degree", id: "id"};

function choice(title, name, options, chosen) {
  const select = element("select", {name});
  for (const [value, text] of options) select.append(element("option", {value}, text));
  select.value = chosen;
  if (select.selectedIndex < 0) select.selectedIndex = 0;
  return element("label", {}, title, select);
}
function filterForm(graph, chosen, go) {
  const search = element("input", {type: "search", name: "search", value: chosen.search ?? "", autocomplete: "off", spellcheck: false});
  const classes = graph.classes.map((name) => [name, `${letterOf(name)} ${name}`]);
  const hasParts = graph.parts.length > 0;
  const sorts = graph.sortable.filter((name) => hasParts || name !== "p_known").map((name) => [name, orderTitles[name] ?? name]);
  const reasons = [["", "all"], ...graph.reasons.map((name) => [name, name])];
  const form = element(
    "form",
    {className: "filters", role: "search", "aria-label": "Filter the nodes"},
    element("label", {}, "Search in ids", search),
    choice("Predicted class", "predicted_class", [["", "all"], ...classes], chosen.predicted_class ?? ""),
    ...(hasParts ? [choice("Reason", "reason", reasons, chosen.reason ?? "")] : []),
    choice("Split", "split", ["", "train", "val", "test"].map((name) => [name, name || "all"]), chosen.split ?? ""),
    choice("Order by", "sort", sorts, chosen.sort ?? "trust"),
    choice("Direction", "descending", [["", "smallest first"], ["true", "largest first"]], chosen.descending ?? ""),
  );
  const changed = (isTyped) => go({...chosen, ...Object.fromEntries(new FormData(form)), offset: ""}, isTyped);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => {
    if (event.target !== search) changed(false);
  });
  let timer = 0;
  search.addEventListener("input", () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => changed(true), 250);
  });
  return form;
}
function heads(graph, chosen, go) {
  const sort = chosen.sort ?? "trust";
  const isDescending = chosen.descending === "true";
  const ordered = (column) => {
    if (!graph.sortable.includes(column.key)) return column;
    return {...column, order: column.key === sort ? (isDescending ? "descending" : "ascending") : "none"};
  };
  const head = (column) => {
    if (!column.order) return column.title;
    const arrow = {ascending: " ▲", descending: " ▼", none: ""}[column.order];
    const turn = () => go({...chosen, sort: column.key, descending: column.order === "ascending" ? "true" : "", offset: ""}, false, column.key);
    return button(`${column.title}${arrow}`, turn, {className: "order", "data-key": column.key});
  };
  return {ordered, head};
}
const listColumns = [
  columns.idColumn,
  columns.classColumn,
  columns.probabilityColumn,
  columns.knownColumn,
  columns.trustColumn,
  columns.reasonColumn,
  columns.labelColumn,
  columns.splitColumn,
  columns.degreeColumn,
];
// Buttons to page through a list. The total is null if the server has not counted.
export function pager(offset, count, total, size, go) {
  const next = button("Next", () => go(offset + size), {disabled: total === null ? count < size : offset + count >= total});
  const previous = button("Previous", () => go(Math.max(offset - size, 0)), {disabled: offset === 0});
  const range = count ? `${countText(offset + 1)} to ${countText(offset + count)}` : "none";
  const text = total === null ? range : `${range} of ${countText(total)}`;
  return element("div", {className: "bar"}, previous, element("span", {}, text), next);
}
async function page(graph, chosen, go, signal) {
  const {view, ...filters} = chosen;
  const offset = Number(chosen.offset ?? 0) || 0;
  const answer = await ask("nodes", {query: {sort: "trust", ...filters, offset, limit: pageSize}, signal});
  if (!answer.nodes.length && offset === 0) {
    announce("No node passes these filters.");
    return [paragraph("No node passes these filters."), button("Show all nodes", () => go({view: "nodes"}, false))];
  }
  const {ordered, head} = heads(graph, chosen, go);
  const shown = columns.columnsOf(graph, listColumns).map(ordered);
  const sentence = answer.total === null ? "The server has not counted how many nodes these are." : `${countOf(answer.total, "node passes", "nodes pass")} the filters.`;
  announce(sentence);
  return [
    note(sentence, ...(graph.parts.length ? [" A ", diamond(), " marks nodes that look unknown."] : [])),
    table("Nodes", shown, answer.nodes, {head, hidesCaption: true}),
    pager(offset, answer.nodes.length, answer.total, pageSize, (begin) => go({...chosen, offset: begin || ""}, false)),
  ];
}

export function showNodes(place, graph, chosen, signal) {
  const list = element("div", {className: "part"});
  let pageRequest = new AbortController();
  let form = null;
  // Filters stay in place while the list below them changes.
  const go = async (next, isTyped, focusKey = null) => {
    pageRequest.abort();
    pageRequest = new AbortController();
    signal.addEventListener("abort", () => pageRequest.abort());
    const address = addressOf({...next, view: "nodes"});
    if (isTyped) window.history.replaceState(null, "", address);
    else if (address !== window.location.hash) window.history.pushState(null, "", address);
    const name = document.activeElement?.name;
    const isInForm = form?.contains(document.activeElement);
    if (!isTyped) {
      const fresh = filterForm(graph, next, go);
      form.replaceWith(fresh);
      form = fresh;
      if (isInForm && name) form.elements[name].focus();
    }
    const wasInList = list.contains(document.activeElement);
    await fill(list, pageRequest.signal, (inner) => page(graph, next, go, inner));
    if (focusKey) list.querySelector(`button[data-key="${focusKey}"]`)?.focus();
    else if (wasInList) byId("list-title").focus();
  };
  form = filterForm(graph, chosen, go);
  const title = element("h2", {id: "list-title", tabIndex: -1}, "Nodes");
  place.replaceChildren(element("section", {}, title, form, list));
  return fill(list, signal, (inner) => page(graph, chosen, go, inner));
}

// The nodes whose labels would teach most.
export function showLabelNext(place, graph, chosen, signal) {
  const list = element("div", {className: "part"});
  const offset = Number(chosen.offset ?? 0) || 0;
  const shown = columns.columnsOf(graph, [
    {title: "position", number: true, cell: (row, index) => countText(offset + index + 1)},
    columns.idColumn,
    columns.classColumn,
    columns.probabilityColumn,
    columns.knownColumn,
    columns.trustColumn,
    columns.reasonColumn,
    columns.detailColumn,
  ]);
  place.replaceChildren(
    element(
      "section",
      {},
      element("h2", {tabIndex: -1}, "Label next"),
      paragraph("These nodes would teach most if they had a label: together they reach as much uncertainty as possible. They are ordered by what each one adds."),
      list,
    ),
  );
  return fill(list, signal, async (inner) => {
    const answer = await ask("triage", {query: {list: "label_next", offset, limit: pageSize}, signal: inner});
    if (!answer.rows.length) return paragraph("There is no node to label: every node outside of training has a label, or the list is empty.");
    announce(`${countOf(answer.total ?? answer.rows.length, "node is", "nodes are")} on the labelling list.`);
    const go = (begin) => {
      window.location.hash = addressOf({view: "label_next", offset: begin || ""});
    };
    return [table("The labelling list", shown, answer.rows, {hidesCaption: true}), pager(offset, answer.rows.length, answer.total, pageSize, go)];
  });
}
