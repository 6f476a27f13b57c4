"use strict";
// The entry of a node: prediction, reason, parts, neighbourhood, contributors.
const partTitles = {
  features: "own features",
  neighbourhood: "neighbourhood",
  opinion: "opinion",
  labels: "labels near",
};

function withStarts(lists) {
  let start = 0;
  const starts = lists.count.map((count) => {
    start += count;
    return start - count;
  });
  return {...lists, start: [...starts, start]};
}
const neighbourLists = withStarts(nodeData.neighbours);
const contributorLists = withStarts(nodeData.contributors);
function slice(lists, row) {
  return [lists.start[row], lists.start[row + 1]];
}
function contributorsOf(row) {
  const all = contributorLists;
  const [begin, end] = slice(all, row);
  const list = [];
  for (let at = begin; at < end; at += 1) {
    list.push({
      index: all.index[at],
      share: all.share[at] / all.units,
      weight: all.weight[at],
      adjacent: all.adjacent[at] === "1",
      leading: nodeData.leading[all.index[at]],
    });
  }
  return list;
}
function neighboursOf(row) {
  return neighbourLists.index.slice(...slice(neighbourLists, row));
}
function smallTable(caption, header, lines) {
  const head = element("tr", {}, ...header.map((title) => element("th", {scope: "col"}, title)));
  const body = lines.map(([first, ...others]) =>
    element("tr", {}, element("th", {scope: "row"}, first), ...others.map((cell) => element("td", {}, cell))),
  );
  const table = element("table", {}, element("caption", {}, caption));
  table.append(element("thead", {}, head), element("tbody", {}, ...body));
  const box = element("div", {className: "wide", tabIndex: 0}, table);
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", caption);
  return box;
}

function predictionSentence(row) {
  const sentence = element("p", {}, "Predicted ", className(nodeData.predicted[row]));
  sentence.append(` with ${percentText(nodeData.probability[row])}; `);
  if (nodeData.label[row] < 0) sentence.append("it has no label.");
  else sentence.append("its label is ", className(nodeData.label[row]), ".");
  return sentence;
}
function reasonSentence(row) {
  if (nodeData.p_known === null) return "";
  const p = nodeData.p_known[row];
  return element(
    "p",
    {className: "why"},
    `${percentText(p)} of the known nodes look at least as strange. Reason: `,
    element("bdi", {}, reasonText(row)),
    ".",
  );
}
function evidenceSentence(row, contributors) {
  let text =
    `It has ${countsText(nodeData.evidence[row])} pseudo-counts of evidence; the median of the known test nodes is ` +
    `${numberText(nodeData.median, 3)}. Its own features alone would give it ${countsText(nodeData.own[row])}.`;
  if (contributors.some((each) => each.index === row && each.share > 0.999)) text += " No other node contributes.";
  return element("p", {}, text);
}
function partTable(row) {
  const lines = nodeData.parts.map((part) => {
    const p = nodeData.p_parts[part][row];
    const meter = element("meter", {min: 0, max: 1, low: 0.05, value: p});
    meter.setAttribute("aria-hidden", "true");
    return [partTitles[part] ?? part, numberText(p), meter];
  });
  return smallTable("P-values of the parts: small ones are strange", ["part", "p", ""], lines);
}

function svgElement(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
// Draws the node and its contributors, clockwise by decreasing share. A line is as wide as the
// share, and dashed if no edge joins the two nodes; the ring is the node's own share.
function contributorDrawing(row, contributors) {
  const [width, height, circle] = [320, 236, 78];
  const [middleX, middleY] = [width / 2, height / 2];
  const others = contributors.filter((each) => each.index !== row);
  const own = contributors.find((each) => each.index === row)?.share ?? 0;
  const lines = [];
  const circles = [];
  const disc = (x, y, r, label, index) => {
    const kind = label < 0 ? "node unnamed" : `node k${label % 7}`;
    const letter = svgElement("text", {x, y: y + 4, "text-anchor": "middle", class: "in-node"}, label < 0 ? "?" : nodeData.letters[label]);
    const mark = svgElement("g", {}, svgElement("circle", {cx: x, cy: y, r, class: kind}), letter);
    mark.dataset.tip = `node ${nodeData.names[index]}`;
    return mark;
  };
  others.forEach((each, place) => {
    const angle = (2 * Math.PI * place) / others.length - Math.PI / 2;
    const [x, y] = [middleX + circle * Math.cos(angle), middleY + circle * Math.sin(angle)];
    const line = {x1: middleX, y1: middleY, x2: x, y2: y, "stroke-width": Math.max(12 * each.share, 1)};
    lines.push(svgElement("line", {...line, class: each.adjacent ? "edge" : "edge far"}));
    circles.push(disc(x, y, 12, each.leading, each.index));
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const anchor = Math.abs(cos) < 0.2 ? "middle" : cos > 0 ? "start" : "end";
    const at = {x: middleX + 100 * cos, y: middleY + 100 * sin + (Math.abs(cos) < 0.2 ? (sin > 0 ? 9 : 0) : 4)};
    circles.push(svgElement("text", {...at, "text-anchor": anchor}, `${place + 1}: ${Math.round(100 * each.share)} %`));
  });
  const ring = own > 0 ? [svgElement("circle", {cx: middleX, cy: middleY, r: 20 + 6 * own, class: "ring", "stroke-width": Math.max(12 * own, 1)})] : [];
  const root = disc(middleX, middleY, 16, nodeData.predicted[row], row);
  const drawing = svgElement("svg", {viewBox: `0 0 ${width} ${height}`, class: "plot", role: "img"}, ...lines, ...ring, root, ...circles);
  drawing.setAttribute("aria-label", "the node and its contributors; the table beside has the same numbers");
  return drawing;
}
function contributorParts(row, contributors) {
  if (!contributors.length) return [element("p", {className: "note"}, "The contributors of this node were not computed; the note below says why.")];
  const rest = Math.max(1 - contributors.reduce((sum, each) => sum + each.share, 0), 0);
  const isBound = contributorLists.bound[row] === "1";
  const share = (value) => (value < 0.001 ? "< 0.1 %" : percentText(value));
  const least = (value, text) => (isBound && value >= 0.001 ? `≥ ${text}` : text);
  let number = 0;
  const lines = contributors.map((each) => {
    const isItself = each.index === row;
    if (!isItself) number += 1;
    const name = isItself ? "itself" : element("span", {}, `${number}: `, nodeLink(each.index));
    return [name, badge(each.leading), numberText(each.weight), least(each.share, share(each.share))];
  });
  lines.push(["all others", "", "", isBound ? `≤ ${share(rest)}` : share(rest)]);
  const header = ["contributor", "leading class", "weight", "share"];
  return [
    contributorDrawing(row, contributors),
    smallTable("Where the evidence comes from", header, lines),
  ];
}
function neighbourPart(row, neighbours) {
  const degree = nodeData.degree[row];
  if (!degree) return element("p", {}, "The node has no neighbours.");
  const more = degree > neighbours.length ? `, of which ${neighbours.length} are shown` : "";
  const heading = element("p", {}, `${degree.toLocaleString("en")} ${degree === 1 ? "neighbour" : "neighbours"}${more}, with predicted classes:`);
  const items = neighbours.map((index) => {
    const item = element("li", {}, nodeLink(index));
    if (index < rowCount) item.prepend(badge(nodeData.predicted[index]), " ");
    return item;
  });
  return element("div", {}, heading, element("ul", {className: "classes"}, ...items));
}

function showNode(row) {
  const contributors = contributorsOf(row);
  const neighbours = neighboursOf(row);
  const kinds = [`split: ${splitText(row)}`];
  if (markText(row)) kinds.push(`unknown node: ${markText(row)}`);
  const title = element("h3", {}, "Node ", element("bdi", {}, nodeData.names[row]), " ", element("small", {}, kinds.join(", ")));
  const left = element("div", {}, predictionSentence(row), reasonSentence(row), evidenceSentence(row, contributors));
  if (nodeData.parts.length) left.append(partTable(row));
  left.append(neighbourPart(row, neighbours));
  const right = element("div", {}, ...contributorParts(row, contributors));
  const card = byId("node-card");
  card.replaceChildren(title, element("div", {className: "columns"}, left, right));
  card.hidden = false;
  state.picked = row;
  showPage();
  for (const listener of listeners) listener(state.selected);
}
function openFromAddress() {
  const match = /^#node-(\d+)$/.exec(window.location.hash);
  const row = match ? Number(match[1]) : rowCount;
  if (row >= rowCount) return;
  showNode(row);
  byId("node-card").scrollIntoView({block: "nearest"});
  byId("node-card").focus({preventScroll: true});
}
window.addEventListener("hashchange", openFromAddress);
// A link to the entry that is already open changes no address, yet leads there.
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#node-"]');
  if (link && link.hash === window.location.hash) openFromAddress();
});
