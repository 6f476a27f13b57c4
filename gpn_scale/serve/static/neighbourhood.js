// The neighbourhood of a node, drawn around it: hop 1 on the inner circle, hop 2 on the outer one.
import {element, moveByArrows, note, svgElement, table} from "./elements.js";
import {hueOf, letterOf, nodeAddress} from "./names.js";
import * as columns from "./node_columns.js";
import {countOf, isStrange, numberText, percentText} from "./texts.js";

const middleSize = 20;
const sizes = [middleSize, 15, 11];
const leastRadius = 105;
const ringDistance = 78;
const mostNames = 14;

// Nodes of the outer circle belong to the first node of the inner circle that an edge joins them to.
function parentsOf(answer) {
  const parents = new Map();
  for (const [first, second] of answer.edges) {
    for (const [inner, outer] of [[first, second], [second, first]]) {
      const isStep = answer.nodes[inner].hop === 1 && answer.nodes[outer].hop === 2;
      if (isStep && (!parents.has(outer) || inner < parents.get(outer))) parents.set(outer, inner);
    }
  }
  return parents;
}
/* Returns positions [x, y] by node, and the radius of the drawing. Each node of hop 1 gets a sector, half of it by its
   number of outer nodes, half equal for all, so that neither circle is crowded. Circles grow until no discs touch. */
export function layout(answer) {
  const inner = answer.nodes.flatMap((node, index) => (node.hop === 1 ? [index] : []));
  const parents = parentsOf(answer);
  const children = new Map(inner.map((index) => [index, []]));
  answer.nodes.forEach((node, index) => {
    if (node.hop === 2) children.get(parents.get(index) ?? inner[0])?.push(index);
  });
  const numOuter = [...children.values()].reduce((sum, list) => sum + list.length, 0);
  const angles = new Map();
  let [begin, gapInner, gapOuter] = [-Math.PI / 2, Infinity, Infinity];
  for (const index of inner) {
    const own = children.get(index);
    const share = numOuter ? (0.5 / inner.length) + (0.5 * own.length) / numOuter : 1 / inner.length;
    const sector = 2 * Math.PI * share;
    angles.set(index, begin + sector / 2);
    own.forEach((child, place) => angles.set(child, begin + (sector * (place + 0.5)) / own.length));
    gapInner = Math.min(gapInner, sector);
    if (own.length) gapOuter = Math.min(gapOuter, sector / own.length);
    begin += sector;
  }
  const innerRadius = Math.max(leastRadius, 46 / gapInner);
  const outerRadius = Math.max(innerRadius + ringDistance, 27 / gapOuter);
  const radii = [0, innerRadius, outerRadius];
  const position = answer.nodes.map((node, index) => {
    const angle = angles.get(index) ?? 0;
    return [radii[node.hop] * Math.cos(angle), radii[node.hop] * Math.sin(angle)];
  });
  return {position, radius: (numOuter ? outerRadius : innerRadius) + 30};
}

function shortName(id) {
  const letters = [...id];
  return letters.length > 12 ? `${letters.slice(0, 11).join("")}…` : id;
}
function describe(node) {
  const hops = ["the node itself", "one edge away", "two edges away"][node.hop];
  const label = node.label === null ? ["no label"] : ["label ", element("bdi", {}, node.label)];
  const known = node.p_known === null ? "" : `, p known ${numberText(node.p_known)}${isStrange(node) ? " (it looks unknown)" : ""}`;
  const predicted = element("bdi", {}, node.predicted_class);
  return element("span", {}, element("bdi", {}, node.id), ": predicted ", predicted, ` with ${percentText(node.probability)}${known}, `, ...label, `, ${hops}.`);
}
function disc(node, [x, y], showsName) {
  const size = sizes[node.hop];
  const kind = `node ${hueOf(node.predicted_class)}${node.split === "train" ? " trained" : ""}`;
  const wide = size * 1.3;
  const shape = isStrange(node)
    ? svgElement("path", {d: `M${x} ${y - wide}L${x + wide} ${y}L${x} ${y + wide}L${x - wide} ${y}Z`, class: kind})
    : svgElement("circle", {cx: x, cy: y, r: size, class: kind});
  const letter = svgElement("text", {x, y, class: "in-node", "text-anchor": "middle", dy: "0.35em"}, letterOf(node.predicted_class));
  const made = svgElement("a", {href: nodeAddress(node.id), tabindex: node.hop ? "-1" : "0", "aria-label": describe(node).textContent}, shape, letter);
  if (showsName) {
    made.append(svgElement("text", {x, y: y + size + 13, class: "name", "text-anchor": "middle"}, shortName(node.id)));
  }
  return made;
}
function edgeLine(position, [first, second, weight], heaviest) {
  const [[x1, y1], [x2, y2]] = [position[first], position[second]];
  const width = 1 + 4 * Math.sqrt(Math.max(weight ?? 1, 0) / heaviest);
  return svgElement("line", {x1, y1, x2, y2, class: "edge", "stroke-width": heaviest > 0 ? width.toFixed(2) : 1});
}

/* The drawing with a line of text that says which node is focused or under the pointer. All nodes are links; arrow
   keys move among them, as only one is in the order of tabs. */
export function neighbourhoodDrawing(answer) {
  const {position, radius} = layout(answer);
  const weights = answer.edges.map(([, , weight]) => weight ?? 1);
  const heaviest = Math.max(...weights, 0);
  const isEven = weights.every((weight) => weight === weights[0]);
  const numInner = answer.nodes.filter((node) => node.hop === 1).length;
  const lines = answer.edges.map(([i, j, weight]) => edgeLine(position, [i, j, isEven ? heaviest / 9 : weight], heaviest));
  const discs = answer.nodes.map((node, index) => disc(node, position[index], node.hop === 1 && numInner <= mostNames));
  const drawing = svgElement(
    "svg",
    {
      viewBox: `${-radius} ${-radius} ${2 * radius} ${2 * radius}`,
      class: "neighbourhood",
      role: "group",
      "aria-label": "The neighbourhood. Arrow keys move among the nodes, Enter goes to one.",
    },
    ...lines,
    ...discs.slice(1),
    discs[0],
  );
  drawing.style.maxWidth = `${Math.min(2 * radius * 1.15, 620)}px`;
  const caption = element("p", {className: "caption"});
  const resting = "Point at a node, or move there with the arrow keys, to read about it; activate it to go there.";
  const tell = (index) => {
    caption.replaceChildren(index === null ? resting : describe(answer.nodes[index]));
    lines.forEach((line, place) => line.classList.toggle("near", index !== null && answer.edges[place].slice(0, 2).includes(index)));
  };
  discs.forEach((mark, index) => {
    mark.addEventListener("pointerenter", () => tell(index));
    mark.addEventListener("pointerleave", () => tell(null));
    mark.addEventListener("focus", () => {
      for (const each of discs) each.setAttribute("tabindex", each === mark ? "0" : "-1");
      tell(index);
    });
  });
  tell(null);
  moveByArrows(drawing, "a", {sideways: true});
  return [drawing, caption, legend(answer.nodes)];
}
function legend(nodes) {
  const sample = (shape, text) => element("li", {}, svgElement("svg", {viewBox: "-12 -12 24 24", class: "sample", "aria-hidden": "true"}, shape), text);
  const items = [sample(svgElement("circle", {r: 9, class: "node unnamed"}), "a node, with the letter of its predicted class")];
  if (nodes.some(isStrange)) items.push(sample(svgElement("path", {d: "M0 -11L11 0L0 11L-11 0Z", class: "node unnamed"}), "looks unknown"));
  if (nodes.some((node) => node.split === "train")) items.push(sample(svgElement("circle", {r: 9, class: "node unnamed trained"}), "a training node"));
  return element("ul", {className: "legend"}, ...items);
}

export function neighbourhoodTable(answer, graph) {
  const weights = new Map();
  for (const [first, second, weight] of answer.edges) {
    if (first === 0) weights.set(second, weight);
    if (second === 0) weights.set(first, weight);
  }
  const rows = answer.nodes.map((node, index) => ({...node, weight: weights.get(index) ?? null})).slice(1);
  const shown = columns.columnsOf(graph, [
    columns.idColumn,
    {title: "edges away", number: true, cell: (node) => String(node.hop)},
    {...columns.weightColumn, cell: (node) => (node.weight === null ? "–" : numberText(node.weight))},
    columns.classColumn,
    columns.probabilityColumn,
    columns.knownColumn,
    columns.labelColumn,
  ]);
  const box = element("details", {}, element("summary", {}, "The same as a table"), table("Nodes of the drawing", shown, rows));
  return box;
}
export function neighbourhoodSentence(answer, degree) {
  const shown = answer.nodes.length - 1;
  if (!shown) return note("The node has no neighbours: the model knows it by its own features alone.");
  const cut = answer.truncated ? " Only the strongest are drawn." : "";
  const neighbours = degree === null ? "" : `It has ${countOf(degree, "neighbour", "neighbours")}. `;
  return note(`${neighbours}${countOf(shown, "node is", "nodes are")} drawn around it.${cut}`);
}
