// A text field with suggestions, after the combobox pattern of ARIA.
import {element, note} from "./elements.js";
import {errorNote} from "./server.js";

const pause = 150;
let fieldCount = 0;

/* Returns {box, input}. `find(text, signal)` returns suggestions {value, content}; `choose(value)` is called with the
   chosen one, or with what was typed. */
export function suggestionField({label, hint = "", find, choose, keepsChoice = false, opensOnClick = false, key = ""}) {
  fieldCount += 1;
  const listId = `suggestions-${fieldCount}`;
  const input = element("input", {
    type: "text",
    placeholder: hint,
    autocomplete: "off",
    spellcheck: false,
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": listId,
  });
  input.setAttribute("autocapitalize", "none");
  const list = element("ul", {id: listId, className: "suggestions", role: "listbox", "aria-label": "Suggestions", hidden: true});
  const state = element("div", {className: "field-state", role: "status"});
  const title = element("span", {className: "field-title"}, label);
  if (key) title.append(" ", element("kbd", {}, key));
  const box = element("div", {className: "field"}, element("label", {}, title, input), list, state);
  // A press on a button in the message must not take the focus, which would remove the message first.
  state.addEventListener("pointerdown", (event) => event.preventDefault());
  let active = -1;
  let timer = 0;
  let request = new AbortController();

  const options = () => [...list.querySelectorAll("[role=option]")];
  function close() {
    window.clearTimeout(timer);
    request.abort();
    list.hidden = true;
    list.replaceChildren();
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }
  function take(value) {
    close();
    state.replaceChildren();
    input.value = keepsChoice ? value : "";
    choose(value);
  }
  function activate(place) {
    const all = options();
    if (!all.length) return;
    active = (place + all.length) % all.length;
    all.forEach((option, index) => option.setAttribute("aria-selected", String(index === active)));
    all[active].scrollIntoView({block: "nearest"});
    input.setAttribute("aria-activedescendant", all[active].id);
  }
  function show(found, text) {
    const made = found.map(({value, content}, place) => {
      const option = element("li", {id: `${listId}-${place}`, role: "option", "aria-selected": "false"}, ...content);
      option.dataset.value = value;
      option.addEventListener("pointerdown", (event) => event.preventDefault());
      option.addEventListener("click", () => take(value));
      return option;
    });
    list.replaceChildren(...made);
    list.hidden = !made.length;
    input.setAttribute("aria-expanded", String(made.length > 0));
    const count = made.length === 1 ? "1 suggestion." : `${made.length} suggestions.`;
    const none = text ? "Nothing that begins so is known." : "There is nothing to choose.";
    const said = element("span", {className: made.length ? "unseen" : "note"}, made.length ? count : none);
    state.replaceChildren(said);
  }
  async function look() {
    request.abort();
    request = new AbortController();
    const {signal} = request;
    const text = input.value.trim();
    active = -1;
    input.removeAttribute("aria-activedescendant");
    const waiting = window.setTimeout(() => state.replaceChildren(note("Searching…")), 400);
    try {
      const found = await find(text, signal);
      if (!signal.aborted) show(found, text);
    } catch (error) {
      if (error.name === "AbortError" || signal.aborted) return;
      list.hidden = true;
      state.replaceChildren(errorNote(error, look));
    } finally {
      window.clearTimeout(waiting);
    }
  }
  input.addEventListener("input", () => {
    window.clearTimeout(timer);
    if (input.value.trim()) timer = window.setTimeout(look, pause);
    else {
      close();
      state.replaceChildren();
    }
  });
  if (opensOnClick) input.addEventListener("click", look);
  input.addEventListener("keydown", async (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) await look();
      activate(event.key === "ArrowDown" ? active + 1 : Math.max(active, 0) - 1);
    } else if (event.key === "Enter") {
      event.preventDefault();
      const chosen = options()[active]?.dataset.value ?? input.value.trim();
      if (chosen) take(chosen);
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (list.hidden && !keepsChoice) input.value = "";
      close();
      state.replaceChildren();
    }
  });
  input.addEventListener("blur", () => {
    // A field that keeps its choice takes what was typed, also without Enter.
    if (keepsChoice && input.value.trim()) choose(input.value.trim());
    close();
    state.replaceChildren();
  });
  return {box, input};
}
