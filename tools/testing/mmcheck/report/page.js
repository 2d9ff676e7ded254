"use strict";
// SPDX-License-Identifier: GPL-2.0
// The heat map, its search, and the list of cases. All data are in the page.
const data = JSON.parse(document.getElementById("data").textContent);
const words = { p: "passed", f: "failed", s: "skipped", k: "known to fail", ".": "not in this cell" };
const heat = document.getElementById("heat"), detail = document.getElementById("detail");
const find = document.getElementById("find"), found = document.getElementById("found");
const LISTED = 200;

function make(name, properties, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key in node && key !== "role") node[key] = value; else node.setAttribute(key, value);
  }
  node.append(...children.filter(child => child !== null));
  return node;
}
// KUnit suites and selftests may have the same name, but no cell has both.
const title = suite => suite.k ? suite.n + " " + suite.k : suite.n;
const full = (suite, number) => suite.c[number] ? suite.n + "." + suite.c[number] : suite.n;
const count = (letters, letter) => [...letters].filter(one => one === letter).length;
// Turn { value: "1 3-5" }, the form of the data, into a map from each number to its value.
function unfold(grouped) {
  const own = new Map();
  for (const [key, numbers] of Object.entries(grouped)) for (const part of numbers.split(" ")) {
    const [first, last] = part.split("-").map(Number);
    for (let n = first; n <= (last === undefined ? first : last); n++) own.set(n, key);
  }
  return own;
}
for (const suite of data.suites) for (const part of [suite.t, suite.h])
  for (const column of Object.keys(part)) part[column] = unfold(part[column]);
function said(suite, column, number) {
  const own = suite.t[column];
  return own && own.has(number) ? data.texts[own.get(number)] : "";
}
// The states of a case in order, each as [number of the report, letter of the state].
function states(suite, column, number) {
  const own = suite.h[column];
  return own && own.has(number) ? own.get(number).split(" ").map(one => [Number(one.slice(0, -1)), one.slice(-1)]) : [];
}
function sum(letters) {
  return ["f", "k", "p", "s"].filter(l => letters.includes(l)).map(l => count(letters, l) + " " + words[l]).join(", ");
}
function shade(letters) {
  for (const letter of ["f", "k"]) if (letters.includes(letter)) return letter;
  if (!letters.includes("s")) return "p";
  return letters.includes("p") ? "s" : "a";
}
function track(suite, column, number) {
  return states(suite, column, number).map(([when, letter]) => words[letter] + " from " + data.times[when]).join(", then ");
}
// Whether a case matches the search and the filter.
function wanted(suite, number, query, only) {
  const columns = Object.keys(suite.s);
  if (only === "h") {
    if (!columns.some(c => states(suite, c, number).some(([when]) => when === data.times.length - 1))) return false;
  } else if (only && !columns.some(c => suite.s[c][number] === only)) return false;
  if (!query) return true;
  if (full(suite, number).toLowerCase().includes(query)) return true;
  return columns.some(c => said(suite, c, number).toLowerCase().includes(query));
}

let focused = null;
function draw() {
  const query = find.value.trim().toLowerCase();
  const only = document.querySelector("input[name=only]:checked").value;
  const rows = [], hits = [];
  for (const suite of data.suites) {
    const own = suite.c.map((_, number) => number).filter(number => wanted(suite, number, query, only));
    if (!own.length) continue;
    rows.push(suite);
    if (query || only) for (const number of own) hits.push([suite, number]);
  }
  const head = make("tr", {}, make("td", {}));
  for (const cell of data.cells) head.append(make("th", { scope: "col", title: cell.n + ": " + cell.w }, make("span", {}, cell.n)));
  const body = make("tbody");
  for (const suite of rows) {
    const row = make("tr", {}, make("th", { scope: "row", title: title(suite) }, suite.n, suite.k ? make("span", { className: "soft" }, " " + suite.k) : null));
    data.cells.forEach((cell, column) => {
      const letters = suite.s[column];
      if (letters) {
        row.append(make("td", { className: shade(letters), tabIndex: -1, role: "gridcell", "aria-label": sum(letters), title: title(suite) + " on " + cell.n + ": " + sum(letters) }));
        row.lastChild.at = [suite, column];
      } else row.append(make("td", { className: cell.k === "missing" ? "e missing" : cell.k === "none" ? "e n" : "e", role: "gridcell" }));
    });
    body.append(row);
  }
  heat.setAttribute("role", "grid");
  heat.setAttribute("aria-label", "Verdicts of suites in cells");
  heat.replaceChildren(make("thead", {}, head), body);
  focused = body.querySelector("td[tabindex]");
  if (focused) focused.tabIndex = 0;
  if (query || only) {
    found.textContent = hits.length + (hits.length === 1 ? " test" : " tests") + " in " + rows.length + (rows.length === 1 ? " suite" : " suites") + (hits.length > LISTED ? "; the first " + LISTED + " are listed" : "");
    list(hits.slice(0, LISTED));
  } else { found.textContent = ""; if (!location.hash.includes("=")) detail.replaceChildren(); }
}
function link(name) { return make("a", { href: "#case=" + encodeURIComponent(name) }, name); }
function table(heads, rows) {
  const head = make("tr", {}, ...heads.map(name => make("th", { scope: "col" }, name)));
  return make("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": "List of cases" },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}
function state(letter) { return make("td", { className: "state " + ({ f: "bad", p: "good", s: "warn", k: "warn" })[letter] }, words[letter]); }
// The result of a search: each test once, with the number of cells in each state.
function list(hits) {
  const rows = hits.map(([suite, number]) => {
    const all = Object.values(suite.s).map(letters => letters[number]).join("");
    return make("tr", {}, make("td", {}, link(full(suite, number))), state([..."fkps"].find(letter => all.includes(letter))), make("td", {}, sum(all)));
  });
  detail.replaceChildren(...(hits.length ? [make("h3", {}, "Tests found"), table(["test", "verdict", "cells"], rows)] : []));
}
// The cases of a suite in one cell.
function cases(suite, column) {
  const cell = data.cells[column], letters = suite.s[column];
  const order = [...suite.c.keys()].filter(n => letters[n] !== ".").sort((a, b) => "fksp".indexOf(letters[a]) - "fksp".indexOf(letters[b]) || a - b);
  const rows = order.map(n => make("tr", {}, make("td", {}, link(full(suite, n))), state(letters[n]),
    make("td", {}, said(suite, column, n), track(suite, column, n) ? make("div", { className: "soft" }, track(suite, column, n)) : null)));
  detail.replaceChildren(make("h3", {}, title(suite) + " on " + cell.n), make("p", {}, sum(letters)), table(["case", "verdict", "what it says"], rows));
}
// One case in all cells.
function one(name) {
  const rows = [];
  for (const suite of data.suites) {
    const number = suite.c.findIndex((_, n) => full(suite, n) === name);
    for (const c of number < 0 ? [] : Object.keys(suite.s).filter(c => suite.s[c][number] !== "."))
      rows.push(make("tr", {}, make("td", {}, data.cells[c].n), state(suite.s[c][number]),
        make("td", {}, said(suite, c, number), make("div", { className: "soft" }, track(suite, c, number) || (data.times.length > 1 ? "no change" : "first report")))));
  }
  if (!rows.length) return;
  const card = document.getElementById(anchor(name));
  detail.replaceChildren(make("h3", {}, name), card ? make("p", {}, make("a", { href: "#" + card.id }, "The failure, with the line that repeats it")) : "",
    table(["cell", "verdict", "what it says, and its history"], rows));
}
// One cell: its command, its log, and its suites with their counts.
function whole(name) {
  const column = data.cells.findIndex(cell => cell.n === name), cell = data.cells[column];
  if (!cell) return;
  const rows = data.suites.filter(suite => suite.s[column]).map(suite => make("tr", {}, make("td", {},
    make("a", { href: "#suite=" + encodeURIComponent(suite.n) + "&cell=" + encodeURIComponent(name) }, suite.n)), make("td", {}, sum(suite.s[column]))));
  detail.replaceChildren(make("h3", {}, name), make("p", {}, cell.w), cell.i ? make("p", { className: "soft" }, cell.i) : "", cell.a ? make("pre", { tabIndex: 0 }, cell.a) : "",
    cell.l ? make("p", { className: "soft" }, "Log: " + cell.l + ", below O=") : "", table(["suite", "cases"], rows));
}
// The id of a failure's card. failures.py makes the same id.
function anchor(name) { return "failure-" + name.replace(/\W+/g, "-").replace(/^-+|-+$/g, ""); }
function follow() {
  const card = location.hash.startsWith("#failure-") && document.getElementById(location.hash.slice(1));
  if (card) { card.open = true; card.querySelector("summary").focus(); card.scrollIntoView(); return; }
  if (!location.hash.includes("=")) return;
  const asked = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B"));
  if (asked.has("case")) one(asked.get("case"));
  else if (asked.has("suite")) {
    const column = data.cells.findIndex(c => c.n === asked.get("cell"));
    const suite = data.suites.find(s => s.n === asked.get("suite") && s.s[column]);
    if (suite) cases(suite, column);
  } else if (asked.has("cell")) whole(asked.get("cell"));
  else return;
  detail.focus({ preventScroll: true });
  detail.scrollIntoView({ block: "nearest" });
}
function choose(square) {
  const [suite, column] = square.at;
  const hash = "#suite=" + encodeURIComponent(suite.n) + "&cell=" + encodeURIComponent(data.cells[column].n);
  if (location.hash === hash) follow(); else location.hash = hash;
}
heat.addEventListener("click", event => { const square = event.target.closest("td"); if (square && square.at) choose(square); });
heat.addEventListener("keydown", event => {
  const square = event.target.closest("td[tabindex]");
  if (!square) return;
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(square); return; }
  const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  if (!step) return;
  event.preventDefault();
  const rows = [...heat.tBodies[0].rows];
  let y = square.parentNode.sectionRowIndex, x = square.cellIndex, next = null;
  do { y += step[0]; x += step[1]; next = rows[y] && x > 0 ? rows[y].cells[x] : null; } while (next && !next.at);
  if (!next) return;
  focused.tabIndex = -1; focused = next; next.tabIndex = 0; next.focus();
});
for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", async () => {
  const text = button.previousElementSibling;
  try { await navigator.clipboard.writeText(text.textContent); button.textContent = "Copied"; }
  catch { getSelection().selectAllChildren(text); button.textContent = "Selected"; }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});
find.addEventListener("input", draw);
for (const radio of document.querySelectorAll("input[name=only]")) radio.addEventListener("change", draw);
addEventListener("hashchange", follow);
draw();
follow();
