// Requests to the service, the token, and errors as one sentence.
import {button, byId, element, note} from "./elements.js";
import {nodeLink} from "./names.js";

const tokenKey = "gpn_scale token";
let asking = null;

export class ServerError extends Error {
  constructor(status, sentence, nearest = []) {
    super(sentence);
    this.status = status;
    this.nearest = nearest;
  }
}

// Asks the person for the token; requests that fail meanwhile wait for the same answer.
function askForToken(wasRefused) {
  asking ??= new Promise((resolve) => {
    const dialog = byId("token-dialog");
    if (wasRefused) byId("token-problem").textContent = "The server does not accept this token. Check it, and give it again.";
    byId("token").value = "";
    dialog.returnValue = "cancel";
    dialog.showModal();
    dialog.addEventListener(
      "close",
      () => {
        const isGiven = dialog.returnValue === "use";
        if (isGiven) window.sessionStorage.setItem(tokenKey, byId("token").value.trim());
        asking = null;
        resolve(isGiven);
      },
      {once: true},
    );
  });
  return asking;
}
function address(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const parameters = new URLSearchParams(given.map(([key, value]) => [key, String(value)]));
  return given.length ? `${path}?${parameters}` : path;
}
async function fetched(path, query, body, signal) {
  const headers = {Accept: "application/json"};
  const token = window.sessionStorage.getItem(tokenKey);
  if (token) headers.Authorization = `Bearer ${token}`;
  const options = {headers, signal, cache: "no-store"};
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, {method: "POST", body: JSON.stringify(body)});
  }
  try {
    return [token, await fetch(address(path, query), options)];
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "The server does not answer. Check that it is still running, and try again.");
  }
}
// The service's sentences begin in lower case, as messages of commands do.
function sentenceOf(text) {
  const trimmed = text.trim();
  return `${trimmed.slice(0, 1).toUpperCase()}${trimmed.slice(1)}${/[.!?]$/.test(trimmed) ? "" : "."}`;
}
async function readable(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "The answer of the server broke off or is no JSON. Try again.");
  }
}
async function errorOf(response) {
  let answer = {};
  try {
    answer = await response.json();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const sentence = answer.error ?? `The server answered with status ${response.status} and gave no reason.`;
  return new ServerError(response.status, sentenceOf(sentence), answer.nearest ?? []);
}

// Returns the answer of the service, an object. Addresses are relative, so that a path in front of the service does no harm.
export async function ask(path, {query = {}, body, signal} = {}) {
  for (;;) {
    const [token, response] = await fetched(path, query, body, signal);
    if (response.ok) return readable(response);
    const error = await errorOf(response);
    const isRefused = token !== null && token === window.sessionStorage.getItem(tokenKey);
    if (response.status !== 401 || !(await askForToken(isRefused))) throw error;
  }
}
export async function askNode(id, signal) {
  // Browsers resolve these as folders of an address.
  if (["", ".", ".."].includes(id)) {
    const answer = await ask("predict", {body: {ids: [id]}, signal});
    return answer.predictions[0];
  }
  return ask(`nodes/${encodeURIComponent(id)}`, {signal});
}

// The error in its place: the sentence, the nearest ids, and whether trying again may help.
export function errorNote(error, retry = null) {
  if (!(error instanceof ServerError)) throw error;
  const made = element("div", {className: "notice", role: "alert"}, element("p", {}, element("bdi", {}, error.message)));
  if (error.nearest.length) {
    const items = error.nearest.map((id) => element("li", {}, nodeLink(id)));
    made.append(note("Open one of them:"), element("ul", {className: "inline"}, ...items));
  }
  const mayHelp = [0, 401, 408, 429, 500, 502, 503, 504].includes(error.status);
  if (retry && mayHelp) made.append(button("Try again", retry));
  return made;
}

// Fills a place with what `load` returns; shows that it loads, and errors where they belong.
export async function fill(place, signal, load) {
  place.replaceChildren(note("Loading…"));
  place.setAttribute("aria-busy", "true");
  try {
    const made = await load(signal);
    if (!signal.aborted) place.replaceChildren(...[made].flat());
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted) return;
    place.replaceChildren(errorNote(error, () => fill(place, signal, load)));
  } finally {
    if (!signal.aborted) place.removeAttribute("aria-busy");
  }
}
