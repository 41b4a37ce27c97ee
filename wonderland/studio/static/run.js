// One run: its numbers, curves and calibration, its model to try, and the commands that repeat it.

import { chart, groups } from "./charts.js";
import { ago, api, bytes, duration, get, h, number, percent, put, say, state } from "./dom.js";
import { attempt } from "./try.js";

export async function run(main, name, alive) {
  const data = await get(api(name, "details"));
  if (!alive()) return;
  const { summary, test } = data;
  const plots = h("div", { class: "grid" }), head = h("p", {}), figures = h("div", { class: "grid facts" });
  const trial = h("section", { "aria-labelledby": "try" }, h("h2", { id: "try" }, "Try it"));
  put(main, h("h1", {}, name), head, figures,
    summary.problem && h("p", { class: "bad" }, summary.problem),
    data.report && h("p", {}, h("a", { class: "button", href: api(name, "report"), target: "_blank", rel: "noopener" }, "Open the report")),
    trial,
    h("section", { "aria-labelledby": "curves" }, h("h2", { id: "curves" }, "Learning curves"), plots),
    calibration(test),
    data.findings.length > 0 && h("section", {}, h("h2", {}, "Findings about the data"), h("ul", {}, data.findings.map((text) => h("li", {}, text)))),
    h("section", {}, h("h2", {}, "Commands"), data.commands.map(command)));
  show(summary, data, head, figures);
  if (summary.status === "finished") attempt(trial, name, alive);
  else trial.append(h("p", { class: "muted" }, "It can be tried when it is finished."));
  await follow(name, alive, plots, head, figures, data, summary.status, main);
}

function show(summary, data, head, figures) {
  const step = summary.steps && summary.status !== "finished" ? `step ${number(summary.step ?? 0)} of ${number(summary.steps)}` : "";
  put(head, state(summary), " ", [summary.task, summary.model, step, ago(summary.changed)].filter(Boolean).join(" · "));
  const where = summary.status === "finished" ? "On the test part" : "On the validation part so far";
  put(figures, 
    pairs(where, Object.entries(summary.metrics).map(([key, value]) => [key, number(value)])),
    pairs("Data", [["source", summary.data || "–"], ["rows", number(summary.rows)], ...Object.entries(data.split).filter(([, rows]) => rows).map(([part, rows]) => [part, number(rows)])]),
    pairs("Cost", [["weights", number(summary.parameters)], ["model file", bytes(summary.bytes)], ["steps", number(summary.step)], ["training", duration(summary.seconds)]]));
}

function pairs(title, rows) {
  return rows.length ? h("div", { class: "card" }, h("h2", {}, title), h("dl", {}, rows.map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]))) : null;
}

function calibration(test) {
  if (!test.conformal && !test.reliability) return null;
  const { conformal = {}, error = {}, reliability = {} } = test;
  const rows = [];
  if (conformal.coverage !== undefined) rows.push(["coverage", `${percent(conformal.coverage)} at level ${percent(conformal.level)}`]);
  if (conformal.mean_size !== undefined) rows.push(["mean size of a set", number(conformal.mean_size)]);
  if (conformal.mean_width !== undefined) rows.push(["mean width of an interval", number(conformal.mean_width)]);
  if (error.after !== undefined) rows.push(["calibration error", `${number(error.after)} (${number(error.before)} before)`]);
  const line = (side, title) => ({ name: title, points: (reliability[side] ?? []).filter((bin) => bin.count && bin.confidence !== undefined).map((bin) => [bin.confidence, bin.accuracy]) });
  const plot = chart("Share that is correct, by stated probability", [line("before", "before"), line("after", "calibrated")], { x: "probability", square: true });
  if (!rows.length && !plot) return null;
  return h("section", {}, h("h2", {}, "Calibration"), h("div", { class: "grid" }, plot, pairs("Sets and intervals", rows)), test.note && h("p", { class: "muted" }, test.note));
}

function command({ text, command: line }) {
  const button = h("button", { "aria-label": `Copy: ${text}`, onclick: () => copy(line, button) }, "Copy");
  return [h("h3", {}, text), h("div", { class: "command" }, h("pre", { tabindex: "0" }, line), button)];
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    say("Copied");
  } catch {
    button.textContent = "Select and copy it by hand";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

async function follow(name, alive, plots, head, figures, data, before, main) {
  const { curves, summary } = await get(api(name, "curves"));
  if (!alive()) return;
  if (before === "training" && summary.status === "finished") {
    say("The training is finished.");
    await run(main, name, alive);
    return;
  }
  const open = plots.querySelector("details[open]");
  if (!open) {
    const found = groups(curves).map(([title, names]) => chart(names.length === 1 && names[0].startsWith("validation/") ? `${title}, validation` : title, names.map((one) => ({ name: one.startsWith("validation/") ? "validation" : "training", points: curves[one] }))));
    put(plots, ...found.filter(Boolean));
    if (!found.length) plots.append(h("p", { class: "muted" }, "No step is recorded yet."));
  }
  show(summary, data, head, figures);
  if (summary.status === "training") setTimeout(() => alive() && follow(name, alive, plots, head, figures, data, "training", main).catch(() => {}), 1500);
}
