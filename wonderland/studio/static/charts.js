// Charts as SVG: lines differ in colour and in dashes, and every chart has its numbers as a table below it.

import { h, number, s } from "./dom.js";

const W = 460, H = 240, LEFT = 52, RIGHT = 10, TOP = 10, BOTTOM = 30;

function ticks(low, high, count = 5) {
  const span = high - low || Math.abs(high) || 1;
  const raw = span / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((value) => value >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * span; value += step) found.push(Number(value.toPrecision(12)));
  return found;
}

// series: [{name, points: [[x, y], ...]}]; square: both axes from 0 to 1 with the diagonal
export function chart(title, series, { x = "step", square = false } = {}) {
  series = series.filter((one) => one.points.length);
  if (!series.length) return null;
  const points = series.flatMap((one) => one.points);
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const [px, py] of points) { x0 = Math.min(x0, px); x1 = Math.max(x1, px); y0 = Math.min(y0, py); y1 = Math.max(y1, py); }
  if (square) [x0, x1, y0, y1] = [0, 1, 0, 1];
  if (x0 === x1) x1 = x0 + 1;
  if (y0 === y1) { y0 -= 0.5; y1 += 0.5; }
  const px = (value) => LEFT + ((value - x0) / (x1 - x0)) * (W - LEFT - RIGHT);
  const py = (value) => H - BOTTOM - ((value - y0) / (y1 - y0)) * (H - TOP - BOTTOM);
  const lines = series.map((one, i) => {
    const style = `line c${i % 6} d${i % 6}`;
    const path = one.points.map(([a, b], k) => `${k ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("");
    return one.points.length > 1 ? s("path", { d: path, class: style })
      : s("circle", { cx: px(one.points[0][0]), cy: py(one.points[0][1]), r: 3.5, class: style });
  });
  const last = series.map((one) => `${one.name} ends at ${number(one.points.at(-1)[1])}`).slice(0, 6).join(", ");
  const picture = s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${last}` },
    ticks(y0, y1).map((value) => [
      s("line", { x1: LEFT, x2: W - RIGHT, y1: py(value), y2: py(value), class: "axis" }),
      s("text", { x: LEFT - 6, y: py(value) + 4, "text-anchor": "end" }, number(value)),
    ]),
    ticks(x0, x1).map((value) => s("text", { x: px(value), y: H - 10, "text-anchor": "middle" }, number(value))),
    square && s("line", { x1: px(0), y1: py(0), x2: px(1), y2: py(1), class: "even" }),
    lines);
  const legend = series.length > 1 && h("ul", { class: "legend" }, series.map((one, i) => h("li", {},
    s("svg", { viewBox: "0 0 32 6", "aria-hidden": "true" }, s("path", { d: "M0 3H32", class: `line c${i % 6} d${i % 6}` })), one.name)));
  return h("figure", { class: "card" }, h("figcaption", {}, title), picture, legend, numbers(title, series, x));
}

function numbers(title, series, x) {
  const details = h("details", {}, h("summary", {}, "Numbers"));
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    for (const one of series) {
      const step = Math.max(1, Math.ceil(one.points.length / 20));
      const shown = one.points.filter((_, i) => i % step === 0 || i === one.points.length - 1);
      details.append(h("table", {}, h("caption", { class: "visually-hidden" }, `${title}, ${one.name}`),
        h("thead", {}, h("tr", {}, h("th", { class: "number" }, x), h("th", { class: "number" }, one.name))),
        h("tbody", {}, shown.map(([a, b]) => h("tr", {}, h("td", { class: "number" }, number(a)), h("td", { class: "number" }, number(b)))))));
    }
  });
  return details;
}

// The same quantity of several runs, or training and validation of one: names without the part they were measured on.
export function groups(curves) {
  const found = new Map();
  for (const name of Object.keys(curves)) {
    const plain = name.replace(/^validation\//, "");
    if (!found.has(plain)) found.set(plain, []);
    found.get(plain).push(name);
  }
  const later = new Set(["lr", "gradient_norm"]);
  return [...found].sort((a, b) => later.has(a[0]) - later.has(b[0]));
}
