// Columns that tables of nodes share.
import {diamond, element, gauge} from "./elements.js";
import {className, nodeLink} from "./names.js";
import {countText, isStrange, numberText, percentText, unknownP} from "./texts.js";

const gauged = (text, fraction, isLow) => element("span", {className: "gauged"}, element("span", {}, text), gauge(fraction, isLow));
const mark = (node) => (isStrange(node) ? diamond() : "");

export const idColumn = {title: "node", key: "id", cell: (node) => element("span", {}, mark(node), " ", nodeLink(node.id))};
export const classColumn = {title: "predicted", cell: (node) => className(node.predicted_class)};
export const probabilityColumn = {
  title: "probability",
  key: "probability",
  number: true,
  cell: (node) => percentText(node.probability),
};
export const knownColumn = {
  title: "p known",
  key: "p_known",
  number: true,
  cell: (node) => gauged(numberText(node.p_known), node.p_known, node.p_known <= unknownP),
};
export const trustColumn = {title: "trust", key: "trust", number: true, cell: (node) => numberText(node.trust)};
export const reasonColumn = {title: "reason", cell: (node) => element("bdi", {}, node.reason ?? "")};
export const labelColumn = {title: "label", cell: (node) => className(node.label)};
export const splitColumn = {title: "split", cell: (node) => node.split ?? "none"};
export const degreeColumn = {
  title: "degree",
  key: "degree",
  number: true,
  cell: (node) => (node.degree === null ? "n.a." : countText(node.degree)),
};
export const shareColumn = {title: "share", number: true, cell: (node) => gauged(percentText(node.share), node.share)};
export const weightColumn = {title: "weight", number: true, cell: (node) => numberText(node.weight)};
export const detailColumn = {title: "detail", cell: (node) => element("bdi", {}, node.detail ?? "")};

const ofPValues = new Set([knownColumn, reasonColumn]);
// Models without p-values have neither p_known nor reasons.
export const columnsOf = (graph, columns) => columns.filter((column) => graph.parts.length || !ofPValues.has(column));
