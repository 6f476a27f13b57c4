// The review list, one node after the other: the least trusted prediction that is not decided comes first.
import {announce, button, element, paragraph, table} from "./elements.js";
import {addressOf, nodeLink} from "./names.js";
import * as columns from "./node_columns.js";
import {decisionBox, decisionSentence} from "./decision_box.js";
import {entrySections, headingOf, loadNode, summary} from "./node_entry.js";
import {pager} from "./node_list.js";
import {ask, fill} from "./server.js";
import {countOf, countText} from "./texts.js";

const pageSize = 25;

const askPage = (offset, signal) => ask("triage", {query: {list: "review", offset, limit: pageSize}, signal});
// The page that holds a position.
const pageStart = (position) => position - (position % pageSize);
const reviewAddress = (at) => addressOf({view: "review", at: String(at)});

// Returns the first position from `begin` on that is not decided, or null.
async function nextUndecided(begin, signal) {
  for (let offset = pageStart(begin); ; offset += pageSize) {
    const page = await askPage(offset, signal);
    const place = page.rows.findIndex((row, index) => offset + index >= begin && row.decision === null);
    if (place >= 0) return offset + place;
    if (page.rows.length < pageSize) return null;
  }
}
function progressPart(decided, total) {
  const bar = element("progress", {max: Math.max(total, 1), value: Math.min(decided, total)});
  bar.setAttribute("aria-hidden", "true");
  return element("p", {className: "progress"}, bar, ` ${countText(decided)} of ${countText(total)} decided`);
}
function listPart(page, graph, at, go) {
  const shown = columns.columnsOf(graph, [
    {
      title: "position",
      number: true,
      cell: (row, index) => element("a", {href: reviewAddress(page.offset + index), "aria-current": page.offset + index === at ? "true" : "false"}, countText(page.offset + index + 1)),
    },
    {title: "node", cell: (row) => nodeLink(row.id)},
    columns.classColumn,
    columns.probabilityColumn,
    columns.knownColumn,
    columns.trustColumn,
    columns.reasonColumn,
    {title: "decision", cell: (row) => (row.decision ? decisionSentence(row.decision) : "–")},
  ]);
  const made = table("The review list; a position leads to its review", shown, page.rows);
  made.querySelectorAll("tbody tr")[at - page.offset]?.classList.add("picked");
  return element("section", {}, element("h3", {}, "The list"), made, pager(page.offset, page.rows.length, page.total, pageSize, go));
}
function finished(page) {
  if (!page.total) return paragraph("The review list is empty: there is no node outside of training to review.");
  const again = button("Begin at the first node", () => {
    window.location.hash = reviewAddress(0);
  });
  return element("div", {}, paragraph(`All ${countOf(page.total, "node", "nodes")} of the review list are decided. A new decision on a node replaces its old one.`), again);
}

async function review(graph, at, signal, state, setKeys) {
  const page = {offset: pageStart(at), ...(await askPage(pageStart(at), signal))};
  const row = page.rows[at - pageStart(at)];
  if (!row) return finished(page);
  // The list gives more precise reasons than the prediction alone.
  const node = {...(await loadNode(row.id, signal)), reason: row.reason};
  const progress = element("div", {}, progressPart(page.decided, page.total));
  const go = (position) => {
    window.location.hash = reviewAddress(position);
  };
  const onwards = async (kept) => {
    if (row.decision === null) progress.replaceChildren(progressPart(page.decided + 1, page.total));
    row.decision = kept;
    const next = (await nextUndecided(at + 1, signal)) ?? (await nextUndecided(0, signal));
    // Who uses the buttons finds the focus there again; the letters work everywhere.
    state.focusKey = document.activeElement?.closest?.(".decision-box [data-key]")?.dataset.key ?? "";
    if (next === null) window.location.hash = addressOf({view: "review"});
    else go(next);
  };
  const {box, keys} = decisionBox({node, graph, decision: row.decision, signal, decided: onwards});
  setKeys(keys);
  const previous = button("Previous", () => go(at - 1), {disabled: at === 0});
  const next = button("Next", () => go(at + 1), {disabled: at + 1 >= page.total});
  const position = element("span", {}, `${countText(at + 1)} of ${countText(page.total)}`);
  announce(`Review ${at + 1} of ${page.total}: node ${row.id}, predicted ${row.predicted_class}.`);
  return [
    element("section", {}, element("div", {className: "bar apart"}, progress, element("div", {className: "bar"}, previous, position, next)), headingOf(node), box, ...summary(node, graph, row.detail ?? "")),
    entrySections(node, graph, signal, state),
    listPart(page, graph, at, go),
  ];
}

export async function showReview(place, graph, chosen, signal, state, setKeys) {
  await fill(place, signal, async (inner) => {
    if (chosen.at === undefined || !/^\d+$/.test(chosen.at)) {
      const at = await nextUndecided(0, inner);
      if (at === null) return element("section", {}, element("h2", {tabIndex: -1}, "Review"), finished(await askPage(0, inner)));
      window.history.replaceState(null, "", reviewAddress(at));
      return review(graph, at, inner, state, setKeys);
    }
    return review(graph, Number(chosen.at), inner, state, setKeys);
  });
  if (state.focusKey !== undefined && !signal.aborted) {
    const target = state.focusKey ? `.decision-box [data-key="${state.focusKey}"]` : "h2";
    delete state.focusKey;
    place.querySelector(target)?.focus({preventScroll: true});
    window.scrollTo(0, 0);
  }
}
