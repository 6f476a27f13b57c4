// The explorer: the address says what is shown, so that links and the back button work.
import {announce, byId, element, isTyping} from "./elements.js";
import {decisionBox} from "./decision_box.js";
import {showGraph} from "./graph_view.js";
import {nodeAddress, readAddress, rememberClasses} from "./names.js";
import {entrySections, headingOf, loadNode, summary} from "./node_entry.js";
import {showLabelNext, showNodes} from "./node_list.js";
import {findNodes} from "./node_search.js";
import {showReview} from "./review.js";
import {ask, errorNote, fill} from "./server.js";
import {suggestionField} from "./suggestions.js";
import {countText, edgeCount} from "./texts.js";

const content = byId("content");
// What outlives a view: choices of the drawing, and where the focus goes next.
const state = {};
let graph = null;
let request = new AbortController();
let keys = {};

async function showEntry(id, signal) {
  await fill(content, signal, async (inner) => {
    const [node, decisions] = await Promise.all([loadNode(id, inner), ask("decisions", {query: {id, limit: 1}, signal: inner})]);
    const box = decisionBox({node, graph, decision: decisions.decisions[0] ?? null, signal, decided: () => {}, hasKeys: false});
    const title = headingOf(node);
    announce(`Node ${node.id}, predicted ${node.predicted_class}.`);
    return [element("section", {}, title, ...summary(node, graph)), entrySections(node, graph, signal, state), element("section", {}, element("h3", {}, "Your decision"), box.box)];
  });
}
function titleOf(chosen) {
  if (chosen.node !== undefined) return `Node ${chosen.node}`;
  return {review: "Review", label_next: "Label next", graph: "The graph"}[chosen.view] ?? "Nodes";
}
async function show(isFirst = false) {
  request.abort();
  request = new AbortController();
  keys = {};
  const {signal} = request;
  const chosen = readAddress();
  const active = document.activeElement;
  state.wasInDrawing = Boolean(active?.closest?.("svg.neighbourhood"));
  document.title = `${titleOf(chosen)} – ${graph.name}`;
  for (const link of byId("views").querySelectorAll("a")) {
    const isShown = chosen.node === undefined && link.hash === `#view=${chosen.view ?? "nodes"}`;
    if (isShown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!isFirst && chosen.view !== "review") window.scrollTo(0, 0);
  content.setAttribute("aria-busy", "true");
  if (chosen.node !== undefined) await showEntry(chosen.node, signal);
  else if (chosen.view === "review") await showReview(content, graph, chosen, signal, state, (given) => (keys = given));
  else if (chosen.view === "label_next") await showLabelNext(content, graph, chosen, signal);
  else if (chosen.view === "graph") showGraph(content, graph);
  else await showNodes(content, graph, chosen, signal);
  if (signal.aborted) return;
  content.removeAttribute("aria-busy");
  // The focus was on what is gone: it goes on at the heading of what has come.
  const isLost = !isFirst && [document.body, content, null].includes(document.activeElement);
  if (isLost && !state.wasInDrawing) content.querySelector("h2")?.focus({preventScroll: true});
}

function open(id) {
  if (window.location.hash === nodeAddress(id)) show();
  else window.location.hash = nodeAddress(id);
  content.focus({preventScroll: true});
}
function makeSearch() {
  const field = suggestionField({label: "Search a node by its id", hint: "the beginning of an id", find: findNodes, choose: open, key: "/"});
  byId("search").replaceChildren(field.box);
  document.addEventListener("keydown", (event) => {
    if (isTyping(event)) return;
    if (event.key === "/") {
      event.preventDefault();
      field.input.focus();
      field.input.select();
    } else if (event.key in keys) {
      event.preventDefault();
      keys[event.key]();
    }
  });
}
async function start() {
  content.replaceChildren(element("section", {}, element("p", {className: "note"}, "Loading…")));
  try {
    graph = await ask("graph");
  } catch (error) {
    byId("graph-name").textContent = "The graph is not here yet";
    content.replaceChildren(errorNote(error, start));
    content.removeAttribute("aria-busy");
    return;
  }
  rememberClasses(graph.classes);
  byId("graph-name").replaceChildren(element("bdi", {}, graph.name));
  byId("graph-line").textContent = `${countText(graph.num_nodes)} nodes, ${countText(edgeCount(graph))} edges, ${countText(graph.classes.length)} classes`;
  makeSearch();
  window.addEventListener("hashchange", () => show());
  await show(true);
}
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  content.focus();
});
start();
