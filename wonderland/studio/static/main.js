// The pages: the list, one run, a comparison. The address after # says which.

import { compare } from "./compare.js";
import { h, put } from "./dom.js";
import { list } from "./list.js";
import { run } from "./run.js";

let turn = 0;

async function route(first) {
  const mine = ++turn, alive = () => mine === turn;
  const main = document.getElementById("main"), [, page = "", rest = ""] = location.hash.split("/");
  try {
    if (page === "run") await run(main, decodeURIComponent(rest), alive);
    else if (page === "compare") await compare(main, rest.split(",").map(decodeURIComponent).slice(0, 6), alive);
    else await list(main, alive);
  } catch (error) {
    if (alive()) put(main, h("h1", {}, "That did not work"), h("p", { class: "bad", role: "alert" }, error.message), h("p", {}, h("a", { href: "#/" }, "All runs")));
  }
  if (!alive()) return;
  document.title = `${main.querySelector("h1")?.textContent ?? "Runs"} · Wonderland studio`;
  if (!first) { main.focus({ preventScroll: true }); window.scrollTo(0, 0); }
}

document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); document.getElementById("main").focus(); });
window.addEventListener("hashchange", () => route(false));
route(true);
