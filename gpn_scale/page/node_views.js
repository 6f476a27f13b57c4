"use strict";
// The map and the histograms of nodes, which share their selection with the table.
const viewData = JSON.parse(document.getElementById("view-data").textContent);
const darkScreen = window.matchMedia("screen and (prefers-color-scheme: dark)");
const views = {};

function coloured(specification) {
  let text = JSON.stringify(specification);
  if (darkScreen.matches) for (const [light, dark] of Object.entries(viewData.dark)) text = text.replaceAll(light, dark);
  return JSON.parse(text);
}
// Draws a view with its data in place, so that scales never see empty ones.
async function embed(name, specification, renderer, values) {
  const options = {ast: true, actions: false, mode: "vega", renderer, defaultStyle: false};
  const tooltip = (handler, event, item, value) => showTip(event, value === null ? "" : String(value));
  views[name]?.finalize();
  const place = byId(`node-${name}`).querySelector(".view");
  const filled = coloured(specification);
  for (const data of filled.data) if (data.name in values) data.values = values[data.name];
  const made = await vegaEmbed(place, filled, {...options, tooltip});
  views[name] = made;
  return made.view;
}
function chosenView() {
  return Object.fromEntries(["position", "colour"].map((name) => [name, filters.elements[name].value]));
}
function mapPoint(row, map) {
  return {
    x: map.x[row],
    y: map.y[row],
    letter: nodeData.letters[nodeData.predicted[row]],
    own: nodeData.own[row],
    unknown: nodeData.mark[row] > 0,
    name: nodeData.names[row],
  };
}
function median(values) {
  values.sort((a, b) => a - b);
  return values[Math.floor(values.length / 2)];
}
function classLetters(map) {
  const places = nodeData.letters.map(() => [[], []]);
  for (let row = 0; row < rowCount; row += 1) {
    if (map.x[row] === null) continue;
    places[nodeData.predicted[row]][0].push(map.x[row]);
    places[nodeData.predicted[row]][1].push(map.y[row]);
  }
  const letters = places.map(([x, y], label) => ({letter: nodeData.letters[label], x: median(x), y: median(y)}));
  return letters.filter((each) => each.x !== undefined);
}
async function drawMap() {
  const {position, colour} = chosenView();
  const map = nodeData.maps[position];
  state.area = null;
  const all = [];
  for (let row = 0; row < rowCount; row += 1) if (map.x[row] !== null) all.push({x: map.x[row], y: map.y[row]});
  const values = {all, letters: classLetters(map), ...mapValues(state.selected, map)};
  const view = await embed("map", viewData.maps[`${position}-${colour}`], "canvas", values);
  view.addSignalListener("area", (name, value) => {
    const isEmpty = !value || !value.x || !value.y;
    const inside = (number, [a, b]) => number !== null && number >= Math.min(a, b) && number <= Math.max(a, b);
    state.area = isEmpty ? null : (row) => inside(map.x[row], value.x) && inside(map.y[row], value.y);
    soon(update);
  });
}
function mapValues(selected, map) {
  const points = (rows) => rows.filter((row) => map.x[row] !== null).map((row) => mapPoint(row, map));
  return {shown: points(selected), picked: points(state.picked < 0 ? [] : [state.picked])};
}
function feedMap(selected) {
  const view = views.map?.view;
  if (!view) return;
  const values = mapValues(selected, nodeData.maps[chosenView().position]);
  for (const [name, each] of Object.entries(values)) view.data(name, each);
  view.runAsync();
}
function bars(column, rows) {
  const {edges} = viewData.histograms[column];
  const [low, high, bins] = [edges[0], edges.at(-1), edges.length - 1];
  const counts = new Array(bins).fill(0);
  for (const row of rows) {
    const place = Math.floor(((nodeData[column][row] - low) / (high - low)) * bins);
    counts[Math.min(Math.max(place, 0), bins - 1)] += 1;
  }
  return counts.map((count, bin) => ({
    left: edges[bin],
    right: edges[bin + 1],
    count,
    text: `${count.toLocaleString("en")} nodes`,
  }));
}
async function drawHistogram(column) {
  delete state.ranges[column];
  const values = {
    all: bars(column, Array.from({length: rowCount}, (_, row) => row)),
    shown: shownBars(column, state.selected),
  };
  const view = await embed(column, viewData.histograms[column].specification, "svg", values);
  view.addSignalListener("range", (name, value) => {
    if (value && value.left) state.ranges[column] = [Math.min(...value.left), Math.max(...value.left)];
    else delete state.ranges[column];
    soon(update);
  });
}
// The first bar stays even if it is empty: Vega warns of a scale without data.
const shownBars = (column, selected) => bars(column, selected).filter((bar, place) => bar.count || place === 0);
function feedHistogram(column, selected) {
  const view = views[column]?.view;
  if (!view) return;
  view.data("shown", shownBars(column, selected));
  view.runAsync();
}

// Many events in a row, such as those of a dragged selection, cause one update per frame.
let waiting = null;
function soon(action) {
  if (waiting !== null) return;
  waiting = requestAnimationFrame(() => {
    waiting = null;
    action();
  });
}
async function drawViews() {
  await Promise.all([drawMap(), ...Object.keys(viewData.histograms).map(drawHistogram)]);
  document.documentElement.dataset.drawn = String(Math.round(performance.now()));
}
listeners.push(feedMap);
for (const column of Object.keys(viewData.histograms)) {
  listeners.push((selected) => feedHistogram(column, selected));
}
for (const name of ["position", "colour"]) {
  filters.elements[name].addEventListener("change", async () => {
    await drawMap();
    update();
  });
}
byId("node-clear").addEventListener("click", async () => {
  const {position, colour} = chosenView();
  filters.reset();
  Object.assign(filters.elements.position, {value: position});
  Object.assign(filters.elements.colour, {value: colour});
  await drawViews();
  update();
});
darkScreen.addEventListener("change", async () => {
  await drawViews();
  update();
});
update();
openFromAddress();
drawViews();
