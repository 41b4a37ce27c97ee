// Runs side by side: metrics, calibration and costs in one table, curves in one chart.

import { chart, groups } from "./charts.js";
import { api, bytes, duration, get, h, link, number, percent, put, state } from "./dom.js";

export async function compare(main, names, alive) {
  const [all, runs] = await Promise.all([
    get("/api/runs"),
    Promise.all(names.map(async (name) => ({ ...(await get(api(name, "details"))), ...(await get(api(name, "curves"))) }))),
  ]);
  if (!alive()) return;
  const metrics = [...new Set(runs.flatMap((run) => Object.keys(run.summary.metrics)))];
  const rows = metrics.map((name) => [name, runs.map((run) => run.summary.metrics[name]), number, all.lower.includes(name) ? -1 : 1]);
  rows.push(["coverage", runs.map((run) => run.test.conformal?.coverage), percent, 0], ["level", runs.map((run) => run.test.conformal?.level), percent, 0],
    ["mean size of a set", runs.map((run) => run.test.conformal?.mean_size), number, 0], ["mean width of an interval", runs.map((run) => run.test.conformal?.mean_width), number, 0],
    ["calibration error", runs.map((run) => run.test.error?.after), number, -1],
    ["weights", runs.map((run) => run.summary.parameters), number, 0], ["model file", runs.map((run) => run.summary.bytes), bytes, 0],
    ["steps", runs.map((run) => run.summary.step), number, 0], ["training", runs.map((run) => run.summary.seconds), duration, 0]);
  const table = h("table", {}, h("caption", { class: "visually-hidden" }, "Comparison of runs"),
    h("thead", {}, h("tr", {}, h("td", {}, h("span", { class: "visually-hidden" }, "quantity")), names.map((name, i) => h("th", { scope: "col", class: "number" }, h("a", { href: link(name) }, name), " ", state(runs[i].summary))))),
    h("tbody", {}, rows.filter(([, values]) => values.some((value) => value !== undefined && value !== null)).map(line)));
  const curves = {};
  runs.forEach((run, i) => {
    for (const [title, parts] of groups(run.curves)) {
      const best = parts.find((part) => part.startsWith("validation/")) ?? parts[0];
      const where = best.startsWith("validation/") ? `${title}, validation` : title;
      (curves[where] ??= []).push({ name: names[i], points: run.curves[best] });
    }
  });
  const reliability = chart("Share that is correct, by stated probability", runs.map((run, i) => ({
    name: names[i], points: (run.test.reliability?.after ?? []).filter((bin) => bin.count && bin.confidence !== undefined).map((bin) => [bin.confidence, bin.accuracy]),
  })), { x: "probability", square: true });
  put(main, h("h1", {}, `Comparison of ${names.length} runs`), h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Comparison" }, table),
    reliability && h("section", {}, h("h2", {}, "Calibration"), h("div", { class: "grid" }, reliability)),
    h("section", {}, h("h2", {}, "Learning curves"), h("div", { class: "grid" }, Object.entries(curves).map(([title, series]) => chart(title, series)))));
}

function line([name, values, show, better]) {
  const known = values.filter((value) => value !== undefined && value !== null);
  const best = better && known.length > 1 ? Math[better > 0 ? "max" : "min"](...known) : null;
  return h("tr", {}, h("th", { scope: "row" }, name), values.map((value) => {
    const first = best !== null && value === best;
    return h("td", { class: `number${first ? " best" : ""}` }, show(value ?? null), first && h("span", { class: "visually-hidden" }, " (best)"));
  }));
}
