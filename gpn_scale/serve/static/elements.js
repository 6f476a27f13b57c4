// Making of elements. Every text from the server becomes a text node, never markup.

export const byId = (id) => document.getElementById(id);

function assign(made, properties) {
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
}
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  assign(made, properties);
  made.append(...children);
  return made;
}
export function svgElement(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
export function button(text, action, properties = {}) {
  const made = element("button", {type: "button", ...properties}, text);
  made.addEventListener("click", action);
  return made;
}
export const paragraph = (...children) => element("p", {}, ...children);
export const note = (...children) => element("p", {className: "note"}, ...children);

// The mark of what is strange, which does not rest on its colour.
export const diamond = () => element("span", {className: "diamond", title: "it looks unknown"}, "◆");

// A bar beside a number that the text has as well.
export function gauge(fraction, isLow = false) {
  const fill = element("span", {className: isLow ? "fill low" : "fill"});
  fill.style.width = `${100 * Math.min(Math.max(fraction ?? 0, 0), 1)}%`;
  return element("span", {className: "gauge", "aria-hidden": "true"}, fill);
}

// Columns have a title and a cell; the first one heads its row. Narrow screens show titles beside the cells.
export function table(caption, columns, rows, {head = (column) => column.title, hidesCaption = false} = {}) {
  const titles = columns.map((column) => {
    const cell = element("th", {scope: "col", className: column.number ? "number" : ""}, head(column));
    if (column.order) cell.setAttribute("aria-sort", column.order);
    return cell;
  });
  const lines = rows.map((row, place) => {
    const cells = columns.map((column, index) => {
      const made = index ? element("td") : element("th", {scope: "row"});
      made.className = column.number ? "number" : "";
      made.dataset.title = column.title;
      made.append(column.cell(row, place));
      return made;
    });
    return element("tr", {}, ...cells);
  });
  const made = element("table", {className: "stacking"}, element("caption", {className: hidesCaption ? "unseen" : ""}, caption));
  made.append(element("thead", {}, element("tr", {}, ...titles)), element("tbody", {}, ...lines));
  moveByArrows(made, "tbody a, tbody button");
  return made;
}

// Arrow keys move the focus among the matching elements of a container.
export function moveByArrows(container, selector, {sideways = false} = {}) {
  const steps = {ArrowDown: 1, ArrowUp: -1, ...(sideways ? {ArrowRight: 1, ArrowLeft: -1} : {})};
  container.addEventListener("keydown", (event) => {
    const all = [...container.querySelectorAll(selector)];
    const place = all.indexOf(event.target.closest(selector));
    if (place < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    let next = null;
    if (event.key in steps) next = (place + steps[event.key] + all.length) % all.length;
    if (event.key === "Home") next = 0;
    if (event.key === "End") next = all.length - 1;
    if (next === null) return;
    event.preventDefault();
    all[next].focus();
  });
}

export function announce(text) {
  byId("announcer").textContent = text;
}
// Whether a key press belongs to what is being typed or chosen, and is no command.
export function isTyping(event) {
  const target = event.target;
  const isField = target instanceof HTMLElement && target.closest("input, select, textarea, [contenteditable]");
  return Boolean(isField) || event.altKey || event.ctrlKey || event.metaKey || Boolean(document.querySelector("dialog[open]"));
}
