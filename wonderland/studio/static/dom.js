// Elements are made from names, attributes and texts only: nothing of a run is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...present(children));
  return element;
}

function present(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

// Replaces what an element holds; what is null or false is left out.
export function put(element, ...children) {
  element.replaceChildren(...present(children));
}

export function say(text) {
  document.getElementById("said").textContent = text;
}

export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size >= 1e4 || (size < 1e-3 && size > 0)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

export function percent(value) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["bytes", "KiB", "MiB", "GiB"];
  let i = 0;
  while (value >= 1024 && i < 3) { value /= 1024; i += 1; }
  return `${i ? value.toFixed(1) : value} ${units[i]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function ago(moment) {
  const seconds = Math.max(0, Date.now() / 1000 - moment);
  if (seconds < 90) return "just now";
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(1000 * moment).toISOString().slice(0, 10);
}

export function state(run) {
  return h("span", { class: `state ${run.status}` }, run.status);
}

export function link(name) {
  return `#/run/${encodeURIComponent(name)}`;
}

export async function get(path) {
  return read(await fetch(path, { headers: { accept: "application/json" } }));
}

export async function post(path, body) {
  return read(await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }));
}

export async function read(response) {
  let value = null;
  try { value = await response.json(); } catch { /* an error without JSON is said by its status */ }
  if (!response.ok) throw new Error(value?.error?.message ?? `The studio answered with status ${response.status}.`);
  return value;
}

export function api(name, what) {
  return `/api/run/${name.split("/").map(encodeURIComponent).join("/")}/${what}`;
}
