// What if the node had other edges or other values: a list of changes, and the prediction before and after.
import {announce, button, element, note, paragraph, table} from "./elements.js";
import {badge, className, idName} from "./names.js";
import {findNodes} from "./node_search.js";
import {ask, errorNote} from "./server.js";
import {suggestionField} from "./suggestions.js";
import {knownWords, numberText, partTitle, percentText, valueText} from "./texts.js";

const mostNeighbours = 200;
const leastMove = 0.005;

const isMissing = (value) => value === null || value === undefined;
// How a number moved, as a verb; null if it did not.
function verb(before, after) {
  if (isMissing(before) || isMissing(after) || Math.abs(after - before) < leastMove) return null;
  return after > before ? "rises" : "falls";
}
function movedSentences(before, after, parts) {
  const made = [];
  const probability = verb(before.probability, after.probability);
  const change = `from ${percentText(before.probability)} to ${percentText(after.probability)}`;
  if (before.predicted_class !== after.predicted_class) {
    made.push(paragraph("The class changes from ", className(before.predicted_class), " to ", className(after.predicted_class), `, with a probability of ${percentText(after.probability)}.`));
  } else {
    made.push(paragraph("The class stays ", className(after.predicted_class), probability ? `, and its probability ${probability} ${change}.` : ", with about the same probability."));
  }
  const known = verb(before.p_known, after.p_known);
  if (known) {
    const was = knownWords(before.p_known);
    const is = knownWords(after.p_known);
    const judgement = was === is ? `${is}, as before` : `now ${is}`;
    made.push(paragraph(`p known ${known} from ${numberText(before.p_known)} to ${numberText(after.p_known)}: ${judgement}.`));
  } else if (!isMissing(after.p_known)) made.push(paragraph("p known stays about the same."));
  const moves = parts.map((part) => [part, (after[`p_${part}`] ?? 0) - (before[`p_${part}`] ?? 0)]);
  moves.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  if (moves.length && Math.abs(moves[0][1]) >= leastMove) {
    const [part] = moves[0];
    made.push(paragraph(`The part “${partTitle(part)}” moves most, from ${numberText(before[`p_${part}`])} to ${numberText(after[`p_${part}`])}.`));
  }
  return made;
}
function comparison(before, after, parts) {
  const plain = (key, title, text) => ({title, before: text(before[key]), after: text(after[key]), move: verb(before[key], after[key])});
  const rows = [
    {title: "predicted class", before: className(before.predicted_class), after: className(after.predicted_class), move: before.predicted_class === after.predicted_class ? null : "changes"},
    plain("probability", "probability", percentText),
    plain("p_known", "p known", numberText),
    ...parts.map((part) => plain(`p_${part}`, `p of ${partTitle(part)}`, numberText)),
    plain("trust", "trust", numberText),
    plain("alpha_0", "alpha_0", (value) => numberText(value, 3)),
  ].filter((row) => row.title !== "p known" || !isMissing(before.p_known));
  const arrows = {rises: "▲ rises", falls: "▼ falls", changes: "◆ changes"};
  const shown = [
    {title: "", cell: (row) => row.title},
    {title: "before", number: true, cell: (row) => row.before},
    {title: "after", number: true, cell: (row) => (row.move ? element("strong", {}, row.after) : row.after)},
    {title: "moved", cell: (row) => arrows[row.move] ?? "–"},
  ];
  const made = table("Before and after", shown, rows);
  made.classList.replace("stacking", "compact");
  made.classList.add("comparison");
  return made;
}
function findNeighbours(node) {
  let all = null;
  return async (text, signal) => {
    all ??= (await ask("neighbours", {query: {id: node.id, limit: mostNeighbours}, signal})).neighbours;
    const matching = all.filter((each) => each.id.toLowerCase().includes(text.toLowerCase())).slice(0, 12);
    return matching.map((each) => ({
      value: each.id,
      content: [idName(each.id), " ", badge(each.predicted_class), ` weight ${numberText(each.weight)}`],
    }));
  };
}
// A value as its column takes it; an error sentence if the column cannot.
function columnValue(text, kind) {
  if (text === "") return {value: null};
  if (kind !== "number" && kind !== "feature") return {value: text};
  const value = Number(text);
  return Number.isFinite(value) ? {value} : {problem: "This column takes a number, such as 12.5; leave the field empty for a missing value."};
}

export function whatIfForm(node, graph, signal) {
  const changes = {columns: new Map(), added: new Map(), removed: new Set()};
  const kinds = new Map(graph.columns.map((column) => [column.name, column.kind]));
  const values = new Map();
  const chosen = element("ul", {className: "changes", "aria-label": "Changes to try"});
  const problem = element("div", {role: "alert"});
  const result = element("div", {className: "part result", role: "status", tabIndex: -1});
  const attempt = button("Try", tryChanges, {className: "main"});
  const reset = button("Reset", resetAll);

  function say(...sentence) {
    problem.replaceChildren(sentence.length ? element("p", {className: "notice"}, ...sentence) : "");
  }
  function list() {
    const item = (words, forget) => {
      const drop = button("×", () => {
        forget();
        list();
        attempt.focus();
      });
      drop.setAttribute("aria-label", `Drop this change: ${element("span", {}, ...words.map((each) => each.cloneNode?.(true) ?? each)).textContent}`);
      return element("li", {}, element("span", {}, ...words), " ", drop);
    };
    const items = [
      ...[...changes.added].map(([id, weight]) => item(["add an edge to ", idName(id), weight === null ? "" : ` with weight ${numberText(weight)}`], () => changes.added.delete(id))),
      ...[...changes.removed].map((id) => item(["remove the edge to ", idName(id)], () => changes.removed.delete(id))),
      ...[...changes.columns].map(([name, value]) => item(["set ", element("bdi", {}, name), " to ", element("bdi", {}, valueText(value))], () => changes.columns.delete(name))),
    ];
    chosen.replaceChildren(...(items.length ? items : [element("li", {className: "note"}, "No change yet. Add one above.")]));
    attempt.disabled = !items.length;
    reset.disabled = !items.length && !result.childElementCount;
    say();
  }
  async function tryChanges() {
    const body = {
      id: node.id,
      columns: Object.fromEntries(changes.columns),
      add_edges: [...changes.added].map(([id, weight]) => (weight === null ? {id} : {id, weight})),
      remove_edges: [...changes.removed],
    };
    result.replaceChildren(note("Computing…"));
    attempt.disabled = true;
    try {
      const answer = await ask("what_if", {body, signal});
      const notes = (answer.notes ?? []).map((text) => element("p", {className: "note"}, element("bdi", {}, text)));
      if (answer.condition) notes.push(element("p", {className: "note"}, element("bdi", {}, answer.condition)));
      result.replaceChildren(
        element("div", {className: "moved"}, ...movedSentences(answer.before, answer.after, graph.parts)),
        comparison(answer.before, answer.after, graph.parts),
        ...notes,
      );
      result.focus({preventScroll: true});
      result.scrollIntoView({block: "nearest"});
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      result.replaceChildren(errorNote(error, tryChanges));
    }
    attempt.disabled = false;
    reset.disabled = false;
  }
  function resetAll() {
    changes.columns.clear();
    changes.added.clear();
    changes.removed.clear();
    result.replaceChildren();
    list();
    announce("All changes are dropped.");
    addField.input.focus();
  }

  const weight = element("input", {type: "number", min: "0", step: "any", placeholder: "1"});
  const addField = suggestionField({
    label: "Add an edge to",
    hint: "an id",
    find: findNodes,
    choose: (id) => {
      if (id === node.id) return say("A node has no edge to itself; choose another id.");
      const given = graph.weighted && weight.value !== "" ? Number(weight.value) : null;
      changes.removed.delete(id);
      changes.added.set(id, given);
      announce(`Added to the changes: an edge to ${id}.`);
      return list();
    },
  });
  const removeField = suggestionField({
    label: "Remove the edge to",
    hint: "one of its neighbours",
    find: findNeighbours(node),
    opensOnClick: true,
    choose: (id) => {
      changes.added.delete(id);
      changes.removed.add(id);
      announce(`Added to the changes: without the edge to ${id}.`);
      list();
    },
  });
  const value = element("input", {type: "text", autocomplete: "off", spellcheck: false});
  const findColumns = (text) => {
    const names = [...new Set([...values.keys(), ...kinds.keys()])];
    const matching = names.filter((name) => name.toLowerCase().includes(text.toLowerCase())).slice(0, 12);
    return matching.map((name) => ({
      value: name,
      content: [element("bdi", {}, name), values.has(name) ? element("span", {className: "muted"}, ` is ${valueText(values.get(name))}`) : ""],
    }));
  };
  const columnField = suggestionField({
    label: "Change the column",
    hint: "a name",
    find: async (text) => findColumns(text),
    keepsChoice: true,
    opensOnClick: true,
    choose: (name) => {
      value.placeholder = values.has(name) ? `now ${valueText(values.get(name))}` : "";
    },
  });
  const setColumn = () => {
    const name = columnField.input.value.trim();
    if (!kinds.has(name) && !values.has(name)) {
      return name ? say("No column is called ", element("bdi", {}, name), "; choose one of the suggestions.") : say("Choose a column first.");
    }
    const read = columnValue(value.value.trim(), kinds.get(name));
    if (read.problem) return say(read.problem);
    changes.columns.set(name, read.value);
    announce(`Added to the changes: ${name} is set to ${valueText(read.value)}.`);
    columnField.input.value = "";
    value.value = "";
    value.placeholder = "";
    return list();
  };
  value.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      setColumn();
    }
  });
  const weightLabel = graph.weighted ? [element("label", {className: "short"}, "Weight", weight)] : [];
  const section = element(
    "section",
    {className: "what-if"},
    element("h3", {}, "What if?"),
    note("Changes are tried on a copy: neither the graph nor the model changes. Only this node is changed."),
    element("div", {className: "row"}, addField.box, ...weightLabel),
    element("div", {className: "row"}, removeField.box),
    element("div", {className: "row"}, columnField.box, element("label", {}, "to the value", value), button("Set", setColumn)),
    chosen,
    problem,
    element("div", {className: "bar"}, attempt, reset),
    result,
  );
  list();
  const setColumns = (all) => all.forEach((column) => values.set(column.name, column.value));
  return {section, setColumns};
}
