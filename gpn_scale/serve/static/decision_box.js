// Accept, relabel or skip a prediction, with a note; the service keeps every decision.
import {announce, button, element, note} from "./elements.js";
import {className, letterOf} from "./names.js";
import {ask, errorNote} from "./server.js";
import {decisionText, timeText} from "./texts.js";

export function decisionSentence(decision) {
  const made = element("span", {}, decisionText(decision));
  if (decision.decision === "relabel") made.append(" as ", className(decision.label));
  if (decision.time) made.append(`, ${timeText(decision.time)}`);
  if (decision.note) made.append(", note: ", element("bdi", {}, decision.note));
  return made;
}

/* Returns {box, keys}: `keys` maps a, r and s to what they do, and buttons show these letters if `hasKeys`.
   `decided(decision)` is called after the service has kept one. */
export function decisionBox({node, graph, decision, signal, decided, hasKeys = true}) {
  const remark = element("input", {type: "text", maxLength: 1000, autocomplete: "off"});
  const label = element("select", {});
  for (const name of graph.classes) label.append(element("option", {value: name}, `${letterOf(name)} ${name}`));
  const other = graph.classes.find((name) => name !== node.predicted_class);
  label.value = node.label ?? other ?? node.predicted_class;
  const state = element("p", {className: "decision", role: "status"});
  const problem = element("div");
  const relabelForm = element("form", {className: "row relabel", hidden: true});
  const show = (kept) => state.replaceChildren(kept ? element("span", {}, "Decided: ", decisionSentence(kept), ". A new decision replaces it.") : "Not decided yet.");
  let isSending = false;

  async function send(kind) {
    if (isSending) return;
    isSending = true;
    const body = {id: node.id, decision: kind};
    if (kind === "relabel") body.label = label.value;
    if (remark.value.trim()) body.note = remark.value.trim();
    problem.replaceChildren(note("Saving…"));
    try {
      const kept = await ask("decisions", {body, signal});
      problem.replaceChildren();
      relabelForm.hidden = true;
      show(kept);
      announce(`The node ${node.id} is ${decisionText(kept)}${kind === "relabel" ? ` as ${kept.label}` : ""}.`);
      decided(kept);
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      problem.replaceChildren(errorNote(error, () => send(kind)));
    } finally {
      isSending = false;
    }
  }
  function openRelabel() {
    relabelForm.hidden = false;
    label.focus();
  }
  function closeRelabel() {
    relabelForm.hidden = true;
    relabelButton.focus();
  }
  const keyed = (key, text, action) => {
    const made = button(text, action, {"data-key": key});
    if (hasKeys) {
      made.setAttribute("aria-keyshortcuts", key);
      made.prepend(element("kbd", {}, key), " ");
    }
    return made;
  };
  const acceptButton = keyed("a", "Accept", () => send("accept"));
  const relabelButton = keyed("r", "Relabel…", openRelabel);
  const skipButton = keyed("s", "Skip", () => send("skip"));
  relabelForm.append(
    element("label", {}, "The right class is", label),
    element("button", {type: "submit", className: "main"}, "Save the class"),
    button("Cancel", closeRelabel),
  );
  relabelForm.addEventListener("submit", (event) => {
    event.preventDefault();
    send("relabel");
  });
  label.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    send("relabel");
  });
  relabelForm.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeRelabel();
  });
  remark.addEventListener("keydown", (event) => {
    if (event.key === "Escape") acceptButton.focus();
  });
  show(decision);
  const box = element(
    "div",
    {className: "decision-box", role: "group", "aria-label": "Decision"},
    element(
      "div",
      {className: "bar"},
      element("p", {}, "Is ", className(node.predicted_class), " right?"),
      acceptButton,
      relabelButton,
      skipButton,
      element("label", {className: "remark"}, "Note", remark),
    ),
    relabelForm,
    state,
    problem,
  );
  const keys = {a: () => acceptButton.click(), r: () => relabelButton.click(), s: () => skipButton.click()};
  return {box, keys};
}
