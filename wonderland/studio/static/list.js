// The list of runs: searched, sorted by any metric, and chosen from for a comparison.

import { ago, duration, get, h, link, number, put, say, state } from "./dom.js";

const kept = { query: "", metric: "", task: "", chosen: new Set() };

export async function list(main, alive) {
  let data = await get("/api/runs");
  if (!alive()) return;
  document.getElementById("root").textContent = data.root;
  if (!data.runs.length) {
    put(main, h("h1", {}, "Runs"), h("p", {}, "There are no runs in this folder yet. Make one:"), h("pre", {}, `wonderland fit digits --out ${data.root}/digits`));
    return;
  }
  const body = h("tbody", {}), count = h("p", { class: "muted", role: "status" }), head = h("thead", {});
  const compare = h("button", { class: "main", onclick: () => { location.hash = `#/compare/${[...kept.chosen].map(encodeURIComponent).join(",")}`; } }, "Compare");
  const query = h("input", { type: "search", value: kept.query, oninput: (event) => { kept.query = event.target.value; draw(); } });
  const metric = h("select", { onchange: (event) => { kept.metric = event.target.value; draw(); } },
    h("option", { value: "" }, "newest first"), data.metrics.map((name) => h("option", { value: name, selected: name === kept.metric }, `${name}, best first`)));
  const tasks = [...new Set(data.runs.map((run) => run.task).filter(Boolean))].sort();
  const task = h("select", { onchange: (event) => { kept.task = event.target.value; draw(); } },
    h("option", { value: "" }, "all"), tasks.map((name) => h("option", { value: name, selected: name === kept.task }, name)));
  put(main, h("h1", {}, "Runs"),
    h("div", { class: "bar" }, h("label", {}, "Search", query), h("label", {}, "Task", task), h("label", {}, "Order", metric), compare),
    count, h("div", { class: "wide" }, h("table", { class: "runs" }, h("caption", { class: "visually-hidden" }, "Runs"), head, body)));

  function shown() {
    const words = kept.query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = data.runs.filter((run) => (!kept.task || run.task === kept.task)
      && words.every((word) => `${run.name} ${run.data} ${run.kind} ${run.task} ${run.model} ${run.status}`.toLowerCase().includes(word)));
    if (!kept.metric) return found;
    const sign = data.lower.includes(kept.metric) ? 1 : -1;
    return found.filter((run) => run.metrics[kept.metric] !== undefined).sort((a, b) => sign * (a.metrics[kept.metric] - b.metrics[kept.metric]));
  }

  function measure(run) {
    const name = kept.metric || ["accuracy", "r2", "rmse", "bits_per_byte", ...Object.keys(run.metrics)].find((one) => run.metrics[one] !== undefined);
    return name === undefined ? "" : `${name} ${number(run.metrics[name])}`;
  }

  function draw() {
    const runs = shown();
    count.textContent = `${runs.length.toLocaleString("en")} of ${data.runs.length.toLocaleString("en")} runs`;
    put(head, h("tr", {}, ["choose", "run", "state", "data", "model", "result", "time", "changed"].map((name) => h("th", { scope: "col" }, name))));
    put(body, ...runs.slice(0, 1000).map((run) => h("tr", {},
      h("td", { class: "pick" }, h("input", { type: "checkbox", "aria-label": `Compare ${run.name}`, checked: kept.chosen.has(run.name), onchange: (event) => choose(run.name, event.target.checked) })),
      h("td", { class: "name" }, h("a", { href: link(run.name) }, run.name)),
      h("td", { class: "status" }, state(run)),
      h("td", { class: "more", "data-label": "data" }, run.problem || [run.data, run.rows ? `${run.rows.toLocaleString("en")} rows` : ""].filter(Boolean).join(", ")),
      h("td", { class: "more", "data-label": "model" }, run.model ?? ""),
      h("td", { class: "more", "data-label": "result" }, measure(run)),
      h("td", { class: "more", "data-label": "time" }, run.seconds ? duration(run.seconds) : ""),
      h("td", { class: "more", "data-label": "changed" }, ago(run.changed)))));
    choose();
  }

  function choose(name, on) {
    if (name !== undefined) {
      if (on) kept.chosen.add(name); else kept.chosen.delete(name);
      say(`${kept.chosen.size} chosen`);
    }
    compare.disabled = kept.chosen.size < 2 || kept.chosen.size > 6;
    compare.textContent = kept.chosen.size ? `Compare ${kept.chosen.size} runs` : "Compare (choose 2 to 6)";
  }

  draw();
  const again = async () => {
    if (!alive()) return;
    const training = data.runs.some((run) => run.status === "training");
    try {
      const fresh = await get("/api/runs");
      if (!alive()) return;
      const changed = JSON.stringify(fresh.runs) !== JSON.stringify(data.runs);
      data = fresh;
      if (changed && !body.contains(document.activeElement)) draw();
    } catch { /* the next look may succeed */ }
    setTimeout(again, training ? 2000 : 10000);
  };
  setTimeout(again, 2000);
}
