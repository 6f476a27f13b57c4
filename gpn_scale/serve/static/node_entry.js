// The entry of a node: what is predicted, why, from where, what is around it and what is similar.
import {button, diamond, element, gauge, note, paragraph, table} from "./elements.js";
import {className, idName} from "./names.js";
import {neighbourhoodDrawing, neighbourhoodSentence, neighbourhoodTable} from "./neighbourhood.js";
import * as columns from "./node_columns.js";
import {ask, askNode, fill} from "./server.js";
import {
  evidenceSentence,
  knownSentence,
  numberText,
  partQuestion,
  partTitle,
  percentText,
  sourceSentence,
  trustSentence,
  unknownP,
  valueText,
} from "./texts.js";
import {whatIfForm} from "./what_if.js";

const fewClasses = 6;
const fewColumns = 10;
const narrow = window.matchMedia("(max-width: 40rem)");

function predictionSentence(node) {
  const sentence = paragraph("The model predicts ", className(node.predicted_class), ` with a probability of ${percentText(node.probability)}. `);
  if (node.label === null || node.label === undefined) sentence.append("The node has no label.");
  else sentence.append("Its label is ", className(node.label), node.label === node.predicted_class ? "." : ", another class.");
  return sentence;
}
function tiles(node) {
  const facts = [
    ["probability", percentText(node.probability), node.probability, "of the predicted class"],
    ["p known", numberText(node.p_known), node.p_known, "small: looks unknown", node.p_known <= unknownP],
    ["trust", numberText(node.trust), node.trust, "joins probability and p known"],
    ["alpha_0", numberText(node.alpha_0, 3), null, "pseudo-counts"],
  ].filter(([, , value], place) => place === 3 || (value !== null && value !== undefined));
  const items = facts.map(([title, text, fraction, meaning, isLow]) => {
    const tile = element("div", {}, element("dt", {}, title), element("dd", {className: "value"}, text, ...(isLow ? [" ", diamond()] : [])));
    if (fraction !== null) tile.append(gauge(fraction, isLow));
    tile.append(element("dd", {className: "meaning"}, meaning));
    return tile;
  });
  return element("dl", {className: "tiles"}, ...items);
}
function partTable(node, graph) {
  const shown = [
    {title: "part", cell: (part) => element("span", {}, partTitle(part), element("span", {className: "meaning"}, partQuestion(part)))},
    {title: "p", number: true, cell: (part) => numberText(node[`p_${part}`])},
    {
      title: "",
      cell: (part) => {
        const isLow = node[`p_${part}`] <= unknownP;
        return element("span", {className: "gauged"}, gauge(node[`p_${part}`], isLow), isLow ? element("span", {className: "strange"}, diamond(), " strange") : "");
      },
    },
  ];
  const made = table("P-values of the parts: small ones are strange", shown, graph.parts);
  made.classList.replace("stacking", "compact");
  return made;
}
function classTable(node) {
  const all = Object.entries(node.probabilities ?? {}).sort((a, b) => b[1] - a[1]);
  const shown = [
    {title: "class", cell: ([name]) => className(name)},
    {title: "probability", number: true, cell: ([, p]) => percentText(p)},
    {title: "", cell: ([, p]) => gauge(p)},
  ];
  const made = table("The most probable classes", shown, all.slice(0, fewClasses));
  made.classList.replace("stacking", "compact");
  return made;
}
// Sentences, p-values and classes of a node; `detail` has the figures behind its reason.
export function summary(node, graph, detail = "") {
  const figures = detail ? [" ", element("span", {className: "detail"}, "(", element("bdi", {}, detail), ")")] : [];
  const reason = node.reason ? [element("p", {className: "why"}, "Reason: ", element("bdi", {}, node.reason), ...figures, ".")] : [];
  const left = element(
    "div",
    {},
    predictionSentence(node),
    paragraph(knownSentence(node.p_known)),
    ...reason,
    paragraph(trustSentence(node, graph.promise)),
    paragraph(evidenceSentence(node, graph.classes.length)),
  );
  const right = element("div", {}, classTable(node));
  if (graph.parts.length) {
    left.append(classTable(node));
    right.replaceChildren(partTable(node, graph));
  }
  return [tiles(node), element("div", {className: "columns"}, left, right)];
}

// A section that loads by itself, so that one slow or failed part does not hold up the others.
function loading(title, signal, load) {
  const place = element("div", {className: "part"});
  const made = element("section", {}, element("h3", {}, title), place);
  fill(place, signal, load);
  return made;
}
function neighbourhoodSection(node, graph, signal, state) {
  const hops = element("select", {}, element("option", {value: "1"}, "1"), element("option", {value: "2"}, "2"));
  const limit = element("select", {}, ...["10", "20", "40", "60"].map((count) => element("option", {value: count}, count)));
  hops.value = state.hops ?? "2";
  limit.value = state.limit ?? (narrow.matches ? "20" : "40");
  const place = element("div", {className: "part"});
  const draw = () =>
    fill(place, signal, async (inner) => {
      Object.assign(state, {hops: hops.value, limit: limit.value});
      const answer = await ask("neighbourhood", {query: {id: node.id, hops: hops.value, limit: limit.value}, signal: inner});
      const sentence = neighbourhoodSentence(answer, node.degree ?? null);
      if (answer.nodes.length < 2) return sentence;
      return [sentence, ...neighbourhoodDrawing(answer), neighbourhoodTable(answer, graph)];
    });
  hops.addEventListener("change", draw);
  limit.addEventListener("change", draw);
  const choices = element("div", {className: "bar"}, element("label", {}, "Edges away: up to ", hops), element("label", {}, "Nodes: at most ", limit));
  const made = element("section", {}, element("h3", {}, "Neighbourhood"), choices, place);
  draw().then(() => {
    if (!state.wasInDrawing || signal.aborted) return;
    state.wasInDrawing = false;
    place.querySelector("svg.neighbourhood > a:last-of-type")?.focus();
  });
  return made;
}
function contributorsSection(node, graph, signal) {
  return loading("Where the evidence comes from", signal, async (inner) => {
    const answer = await ask("contributors", {query: {id: node.id, count: 8}, signal: inner});
    if (!answer.contributors.length) return note("No node contributes evidence to this one.");
    const shown = [
      {title: "contributor", cell: (each) => (each.id === node.id ? element("span", {}, "the node itself") : columns.idColumn.cell(each))},
      columns.shareColumn,
      {title: "leading class", cell: (each) => className(each.leading_class)},
      columns.weightColumn,
      {title: "edge", cell: (each) => (each.id === node.id ? "–" : each.adjacent ? "yes" : "no")},
    ];
    const rest = Math.max(1 - answer.contributors.reduce((sum, each) => sum + (each.share ?? 0), 0), 0);
    return [table("Contributors, by share of the evidence", shown, answer.contributors), note(`All others together: ${percentText(rest)}. ${sourceSentence(answer)}`)];
  });
}
function similarSection(node, graph, signal) {
  return loading("Similar nodes", signal, async (inner) => {
    const answer = await ask("similar", {query: {id: node.id, count: 8}, signal: inner});
    if (!answer.nodes.length) return note("There is no other node to compare with.");
    const shown = columns.columnsOf(graph, [
      columns.idColumn,
      {title: "distance", number: true, cell: (each) => numberText(each.distance, 3)},
      columns.classColumn,
      columns.probabilityColumn,
      columns.labelColumn,
    ]);
    return [
      note("Nodes whose features the encoder places nearest in latent space; edges play no part."),
      table("Nearest nodes in latent space", shown, answer.nodes),
    ];
  });
}
function differs(column) {
  return column.usual !== null && column.usual !== undefined && valueText(column.value) !== valueText(column.usual);
}
function columnsSection(node, signal, onColumns) {
  return loading("Its columns", signal, async (inner) => {
    const answer = await ask("features", {query: {id: node.id}, signal: inner});
    onColumns(answer.columns);
    if (!answer.columns.length) return note("The node has no columns with values.");
    const shown = [
      {title: "column", cell: (column) => element("bdi", {}, column.name)},
      {title: "value", number: true, cell: (column) => element(differs(column) ? "strong" : "span", {}, element("bdi", {}, valueText(column.value)))},
      {title: "usual", number: true, cell: (column) => element("bdi", {}, valueText(column.usual))},
    ];
    const place = element("div", {className: "part"});
    const show = (count) => {
      const made = table("Columns, those that differ most first", shown, answer.columns.slice(0, count));
      made.classList.replace("stacking", "compact");
      place.replaceChildren(made);
      if (count < answer.columns.length) {
        place.append(button(`Show all ${answer.columns.length}`, () => show(answer.columns.length)));
      } else if (answer.num_columns > answer.columns.length) {
        place.append(note(`${answer.columns.length} of ${answer.num_columns} columns are listed.`));
      }
    };
    show(fewColumns);
    return [note("Usual is the median or the most frequent value of the training nodes; values that differ are bold."), place];
  });
}

export function headingOf(node) {
  const kinds = [`split: ${node.split ?? "none"}`];
  if (node.degree !== null && node.degree !== undefined) kinds.push(`degree: ${node.degree}`);
  return element("h2", {id: "entry-title", tabIndex: -1}, "Node ", idName(node.id), " ", element("small", {}, kinds.join(", ")));
}
// Everything below the summary; `state` keeps choices from node to node.
export function entrySections(node, graph, signal, state) {
  const whatIf = whatIfForm(node, graph, signal);
  const left = [neighbourhoodSection(node, graph, signal, state), contributorsSection(node, graph, signal)];
  const right = [whatIf.section, columnsSection(node, signal, whatIf.setColumns), similarSection(node, graph, signal)];
  return element("div", {className: "columns entry"}, element("div", {}, ...left), element("div", {}, ...right));
}
export async function loadNode(id, signal) {
  const node = await askNode(id, signal);
  return {label: null, split: null, p_known: null, reason: null, abstain: null, ...node};
}
