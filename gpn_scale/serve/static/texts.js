// Numbers and judgements in words.

// P-values up to which a node looks unknown, and up to which it is at least unusual (the reasons use the second).
export const unknownP = 0.05;
export const unusualP = 0.1;
export const isStrange = (node) => node.p_known !== null && node.p_known !== undefined && node.p_known <= unknownP;

export function numberText(value, digits = 2) {
  if (value === null || value === undefined) return "n.a.";
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
export function percentText(value, decimals = 1) {
  if (value === null || value === undefined) return "n.a.";
  const least = 10 ** -(decimals + 2);
  if (value > 0 && value < least) return `< ${(100 * least).toFixed(decimals)} %`;
  return `${(100 * value).toFixed(decimals)} %`;
}
// The service counts stored edges, and an undirected edge is stored once in each direction.
export const edgeCount = (graph) => (graph.directed ? graph.num_edges : graph.num_edges / 2);
export const countText = (count) => count.toLocaleString("en");
export const countOf = (count, one, many) => `${countText(count)} ${count === 1 ? one : many}`;
export function valueText(value) {
  if (value === null || value === undefined) return "missing";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  const digits = Number.isInteger(value) ? 21 : 8;
  return value.toLocaleString("en", {maximumSignificantDigits: digits, useGrouping: false});
}

const parts = {
  features: {title: "own features", question: "Do its own features look like those of known nodes?"},
  neighbourhood: {title: "neighbourhood", question: "Do the features around it look like those around known nodes?"},
  opinion: {title: "opinion", question: "Does any class get clear support?"},
  labels: {title: "labels near", question: "Are training nodes as near as for known nodes?"},
};
export const partTitle = (part) => parts[part]?.title ?? part;
export const partQuestion = (part) => parts[part]?.question ?? "";

export function knownWords(p) {
  if (p <= unknownP) return "it looks unknown";
  return p <= unusualP ? "it looks unusual" : "it looks like a known node";
}
export function knownSentence(p) {
  if (p === null || p === undefined) return "This model has no p-values, so it cannot say whether the node looks known.";
  return `${percentText(p)} of the known nodes look at least as strange: ${knownWords(p)}.`;
}
export function trustSentence(node, promise) {
  const trust = `Its trust is ${numberText(node.trust)}`;
  if (node.abstain === null || node.abstain === undefined) return `${trust}, on a scale from 0 to 1.`;
  const threshold = promise ? ` ${numberText(promise.threshold)}` : "";
  if (node.abstain) return `${trust}, below the threshold${threshold} of the promise: the model abstains.`;
  return `${trust}, at or above the threshold${threshold} of the promise: the model answers.`;
}
export function evidenceSentence(node, numClasses) {
  return (
    `It has ${numberText(node.alpha_0, 3)} pseudo-counts (alpha_0), of which ${numClasses} are there without any evidence, ` +
    `one per class. Its own features alone would give it ${numberText(node.alpha_0_no_network, 3)}.`
  );
}
export function promiseSentence(promise) {
  return (
    `Among answered nodes, those with a trust of at least ${numberText(promise.threshold)}, the error rate is at most ` +
    `${percentText(promise.error)} with a confidence of ${percentText(promise.confidence, 0)}. ` +
    `${percentText(promise.answered)} of the nodes are answered.`
  );
}
export function sourceSentence(answer) {
  if (answer.source === "exact") return "Shares come from the exact diffusion.";
  return `Shares come from stored rows; what was cut from them is estimated, and has a share of ${percentText(answer.tail_share)}.`;
}
export function decisionText(decision) {
  const verbs = {accept: "accepted", relabel: "relabelled", skip: "skipped"};
  return verbs[decision.decision] ?? decision.decision;
}
export function timeText(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  return date.toLocaleString("en-GB", {dateStyle: "medium", timeStyle: "short"});
}
