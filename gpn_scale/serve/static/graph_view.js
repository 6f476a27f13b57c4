// Facts of the graph and of the model: what the numbers of the other views rest on.
import {element, note, paragraph} from "./elements.js";
import {className} from "./names.js";
import {countText, edgeCount, partQuestion, partTitle, promiseSentence} from "./texts.js";

function tile(title, value, meaning) {
  return element("div", {}, element("dt", {}, title), element("dd", {className: "value"}, value), element("dd", {className: "meaning"}, meaning));
}
const item = (...children) => element("li", {}, ...children);

export function showGraph(place, graph) {
  const facts = element(
    "dl",
    {className: "tiles"},
    tile("nodes", countText(graph.num_nodes), "each has a prediction"),
    tile("edges", countText(edgeCount(graph)), `${graph.directed ? "directed" : "undirected"}, ${graph.weighted ? "weighted" : "all of the same weight"}`),
    tile("classes", countText(graph.classes.length), "that the model knows"),
    tile("columns", countText(graph.num_columns), "of each node"),
  );
  const parts = graph.parts.map((part) => item(element("strong", {}, partTitle(part)), `: ${partQuestion(part)}`));
  const known = parts.length
    ? [
        paragraph("p known is a p-value: the fraction of known nodes that look at least as strange. It is made of these parts:"),
        element("ul", {}, ...parts),
        note(element("bdi", {}, graph.condition ?? "")),
      ]
    : [paragraph("This model has no p-values, so it cannot say which nodes look unknown.")];
  const promise = graph.promise
    ? [paragraph(promiseSentence(graph.promise)), note(element("bdi", {}, graph.promise.condition))]
    : [paragraph("The run has no promise, so every node is answered. The command gpn-triage finds a threshold that keeps an error rate.")];
  const columns = graph.columns.map((column) => item(element("bdi", {}, column.name), element("span", {className: "muted"}, ` ${column.kind}`)));
  const more = graph.num_columns > columns.length ? [note(`The first ${countText(columns.length)} of ${countText(graph.num_columns)} columns.`)] : [];
  place.replaceChildren(
    element(
      "section",
      {},
      element("h2", {tabIndex: -1}, "The graph ", element("bdi", {}, graph.name)),
      facts,
      element("h3", {}, "Classes"),
      element("ul", {className: "inline"}, ...graph.classes.map((name) => item(className(name)))),
      element("h3", {}, "When a node looks unknown"),
      ...known,
      element("h3", {}, "When the model abstains"),
      ...promise,
      element("h3", {}, "Columns"),
      columns.length ? element("ul", {className: "inline"}, ...columns) : paragraph("The nodes have no columns."),
      ...more,
      element("h3", {}, "For programs"),
      paragraph(
        "Everything here comes from the service's own answers: ",
        element("a", {href: "docs"}, "its description"),
        ", ",
        element("a", {href: "openapi.json"}, "the same for machines"),
        ", ",
        element("a", {href: "metrics"}, "its metrics"),
        ".",
      ),
    ),
  );
}
