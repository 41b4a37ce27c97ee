// A model to try: fields made from its schema, a picture that is dropped, or a text to continue.

import { api, get, h, number, percent, post, put, say } from "./dom.js";

const FILES = new Set(["image", "sound"]);

export async function attempt(place, name, alive) {
  const status = h("p", { class: "muted", role: "status" }, "Loading the model …");
  place.append(status);
  try {
    const about = await get(api(name, "schema"));
    if (!alive()) return;
    status.remove();
    if (about.abilities.includes("chat")) place.append(writing(name));
    place.append(form(name, about));
  } catch (error) {
    status.className = "bad";
    status.textContent = error.message;
  }
}

function form(name, about) {
  const answer = h("div", { class: "answer", role: "status", "aria-live": "polite" });
  const inputs = about.together ? [] : about.fields.slice(0, 200).map((field, i) => input(field, i));
  const steps = about.together ? table(about.fields) : null;
  const level = h("input", { type: "number", min: "0.01", max: "0.999", step: "any", value: about.level, id: "level" });
  const button = h("button", { class: "main", type: "submit" }, about.abilities.includes("chat") ? "Measure the text" : "Predict");
  const element = h("form", { class: "card" }, h("div", { class: "fields" }, steps ? steps.element : inputs.map((one) => one.element),
    h("div", { class: "field" }, h("label", { for: "level" }, "level of sets and intervals"), level)), h("p", {}, button), answer);
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const row = {};
      for (const one of inputs) row[one.field.name] = await one.value();
      const rows = steps ? steps.rows() : [row];
      const found = await post(api(name, "predict"), { rows, level: level.value ? Number(level.value) : null });
      put(answer, ...(steps ? [listed(found.predictions)] : show(found.predictions[0], about, found.level)));
    } catch (error) {
      put(answer, h("p", { class: "bad" }, error.message));
    }
    button.disabled = false;
  });
  return element;
}

function input(field, i) {
  const id = `field-${i}`, title = h("label", { for: id }, field.name, field.unit && ` (${field.unit})`);
  if (FILES.has(field.kind)) return upload(field, id, title);
  let control, list = null;
  if (field.kind === "series") control = h("textarea", { id, placeholder: "1.2, 1.4, 1.1, with a colon between channels" });
  else if (field.kind === "text") control = h("textarea", { id });
  else if (field.kind === "number") control = h("input", { id, type: "number", step: "any", inputmode: "decimal", placeholder: "not known" });
  else if (field.kind === "date") control = h("input", { id, type: "date" });
  else if (field.kind === "boolean" || (field.levels.length && field.levels.length <= 60)) {
    const levels = field.levels.length ? field.levels : ["0", "1"];
    control = h("select", { id }, h("option", { value: "" }, "not known"), levels.map((level) => h("option", { value: level }, level)));
  } else {
    list = field.levels.length ? h("datalist", { id: `${id}-levels` }, field.levels.slice(0, 1000).map((level) => h("option", { value: level }))) : null;
    control = h("input", { id, type: "text", placeholder: "not known", list: list && `${id}-levels` });
  }
  const element = h("div", { class: "field" }, title, control, list);
  if (field.kind === "text" || field.kind === "series") element.style.gridColumn = "1 / -1";
  const value = () => {
    if (field.kind === "text" || field.kind === "series") return control.value;
    if (control.value === "") return null;
    return field.kind === "number" ? Number(control.value) : control.value;
  };
  return { field, element, value };
}

// Rows that belong together, such as the steps of a series: pasted as CSV, or read from a file.
function table(fields) {
  const names = fields.map((field) => field.name), kinds = Object.fromEntries(fields.map((field) => [field.name, field.kind]));
  const control = h("textarea", { id: "steps", rows: "9", spellcheck: "false", placeholder: `${names.join(",")}\n…` });
  const file = h("input", { id: "steps-file", type: "file", accept: ".csv,.tsv,text/csv" });
  file.addEventListener("change", async () => { if (file.files[0]) control.value = await file.files[0].text(); });
  const element = h("div", { class: "field" }, h("label", { for: "steps" }, `rows with the columns ${names.join(", ")}, as CSV`), control,
    h("label", { for: "steps-file" }, "or a file"), file);
  element.style.gridColumn = "1 / -1";
  const rows = () => {
    const lines = control.value.split(/\r?\n/).filter((line) => line.trim());
    if (lines.length < 2) throw new Error("Give a line of names, and a line for each step.");
    const sign = [",", ";", "\t"].sort((a, b) => lines[0].split(b).length - lines[0].split(a).length)[0];
    const cells = (line) => line.split(sign).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1"));
    const head = cells(lines[0]), missing = names.filter((one) => !head.includes(one));
    if (missing.length) throw new Error(`The first line lacks ${missing.join(", ")}.`);
    return lines.slice(1).map((line) => {
      const values = cells(line);
      return Object.fromEntries(names.map((one) => {
        const text = values[head.indexOf(one)] ?? "";
        if (text === "") return [one, null];
        if (kinds[one] !== "number") return [one, text];
        if (Number.isNaN(Number(text))) throw new Error(`${one} is a number, not '${text}'.`);
        return [one, Number(text)];
      }));
    });
  };
  return { element, rows };
}

function listed(records) {
  if (!records.length) return h("p", {}, "Nothing was found.");
  const names = Object.keys(records[0]);
  const cell = (value) => (typeof value === "number" ? number(value) : Array.isArray(value) ? value.join(", ") : value === null ? "" : `${value}`);
  const shown = records.slice(0, 200);
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "The answers" }, h("table", {},
    h("thead", {}, h("tr", {}, names.map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", {}, shown.map((record) => h("tr", {}, names.map((one) => h("td", {}, cell(record[one]))))))),
  records.length > shown.length ? h("p", { class: "muted" }, `${records.length - shown.length} more rows are not shown.`) : "");
}

function upload(field, id, title) {
  const control = h("input", { id, type: "file", accept: field.unit === "GIF" ? "image/gif" : `${field.kind}/*` });
  const picture = h("img", { alt: "The file to predict", hidden: true });
  const zone = h("div", { class: "drop" }, title, h("span", {}, "Drop a file here, or choose one."), control, picture);
  zone.style.gridColumn = "1 / -1";
  let file = null;
  const take = (given) => {
    if (!given) return;
    file = given;
    say(`${given.name} is chosen`);
    if (field.kind === "image") {
      if (picture.src) URL.revokeObjectURL(picture.src);
      picture.src = URL.createObjectURL(given);
      picture.hidden = false;
    }
  };
  control.addEventListener("change", () => take(control.files[0]));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.toggle("over", kind === "dragover");
      if (kind === "drop") take(event.dataTransfer.files[0]);
    });
  }
  const value = async () => {
    if (!file) throw new Error("Choose a file first.");
    if (file.size > 11 * 2 ** 20) throw new Error("The file is larger than 11 MiB: make it smaller.");
    const data = new Uint8Array(await file.arrayBuffer());
    let text = "";
    for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
    return btoa(text);
  };
  return { field, element: zone, value };
}

function show(found, about, level) {
  const parts = [];
  if (Array.isArray(found.found)) return [listed(found.found)];
  if (found.prediction !== undefined) {
    const value = typeof found.prediction === "number" ? number(found.prediction) : found.prediction;
    parts.push(h("p", { class: "big" }, `${value}`, found.probability !== undefined && found.probability !== null ? ` (${percent(found.probability)})` : ""));
  }
  if (Array.isArray(found.set)) parts.push(h("p", {}, `Set at ${percent(level)}: ${found.set.length ? found.set.join(", ") : "empty, no class is plausible"}`));
  if (found.low !== undefined) parts.push(h("p", {}, `Interval at ${percent(level)}: ${number(found.low)} to ${number(found.high)}`));
  if (found.probabilities) {
    const shares = Object.entries(found.probabilities).sort((a, b) => b[1] - a[1]).slice(0, 12);
    parts.push(...shares.map(([label, share]) => h("div", { class: "share" }, h("span", {}, label),
      h("meter", { min: "0", max: "1", value: share, "aria-label": `Probability of ${label}` }), h("span", {}, percent(share)))));
  }
  const told = new Set(["prediction", "probability", "set", "low", "high", "probabilities", ...about.fields.map((field) => field.name)]);
  const rest = Object.entries(found).filter(([key]) => !told.has(key));
  if (rest.length) parts.push(h("dl", {}, rest.map(([key, value]) => [h("dt", {}, key), h("dd", {}, typeof value === "number" ? number(value) : String(value))])));
  return parts;
}

function writing(name) {
  const prompt = h("textarea", { id: "prompt" });
  const temperature = h("input", { id: "temperature", type: "number", min: "0", max: "2", step: "0.1", value: "0.8" });
  const count = h("input", { id: "count", type: "number", min: "1", max: "2000", value: "200" });
  const seed = h("input", { id: "seed", type: "number", min: "0", value: "0" });
  const out = h("pre", { tabindex: "0", "aria-label": "The text" });
  out.hidden = true;
  const button = h("button", { class: "main", type: "submit" }, "Write on"), stop = h("button", { type: "button" }, "Stop");
  stop.disabled = true;
  const field = (title, control) => h("div", { class: "field" }, h("label", { for: control.id }, title), control);
  const whole = field("text to continue", prompt);
  whole.style.gridColumn = "1 / -1";
  const element = h("form", { class: "card" }, h("div", { class: "fields" }, whole, field("temperature", temperature), field("most tokens", count), field("seed", seed)), h("p", {}, button, " ", stop), out);
  let control = null;
  stop.addEventListener("click", () => control?.abort());
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true; stop.disabled = false; out.hidden = false;
    out.textContent = prompt.value;
    control = new AbortController();
    try {
      const asked = { prompt: prompt.value, count: Number(count.value), temperature: Number(temperature.value), seed: Number(seed.value) };
      const response = await fetch(api(name, "write"), { method: "POST", signal: control.signal, headers: { "content-type": "application/json" }, body: JSON.stringify(asked) });
      if (!response.ok) throw new Error((await response.json()).error.message);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let next = await reader.read(); !next.done; next = await reader.read()) out.textContent += next.value;
      say("The text is finished.");
    } catch (error) {
      if (error.name !== "AbortError") out.textContent = error.message;
    }
    button.disabled = false; stop.disabled = true;
  });
  return element;
}
