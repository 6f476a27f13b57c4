// Names of nodes and classes, and the address of a view.
import {element} from "./elements.js";

const hues = 7;
const classPlaces = new Map();

export function rememberClasses(names) {
  classPlaces.clear();
  names.forEach((name, place) => classPlaces.set(name, place));
}
// A, B, ..., Z, AA, AB, ...
export function letterOf(name) {
  let place = classPlaces.get(name);
  if (place === undefined) return "?";
  let letters = "";
  for (place += 1; place > 0; place = Math.floor((place - 1) / 26)) {
    letters = String.fromCharCode(65 + ((place - 1) % 26)) + letters;
  }
  return letters;
}
export function hueOf(name) {
  const place = classPlaces.get(name);
  return place === undefined ? "unnamed" : `k${place % hues}`;
}
export function badge(name) {
  return element("span", {className: `badge ${hueOf(name)}`}, letterOf(name));
}
export function className(name) {
  if (name === null || name === undefined) return element("span", {className: "muted"}, "none");
  return element("span", {className: "class-name"}, badge(name), " ", element("bdi", {}, name));
}
export const idName = (id) => element("bdi", {className: "id"}, id);
export const nodeAddress = (id) => `#node=${encodeURIComponent(id)}`;
export function nodeLink(id) {
  return element("a", {href: nodeAddress(id), className: "id"}, element("bdi", {}, id));
}

// The part of the address after #, as an object; a broken escape is taken as it stands.
export function readAddress() {
  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const pairs = window.location.hash.slice(1).split("&").filter(Boolean);
  return Object.fromEntries(
    pairs.map((pair) => {
      const cut = pair.includes("=") ? pair.indexOf("=") : pair.length;
      return [decoded(pair.slice(0, cut)), decoded(pair.slice(cut + 1))];
    }),
  );
}
export function addressOf(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return `#${given.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join("&")}`;
}
