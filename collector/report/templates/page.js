"use strict";
// Shows the grid by metric and baseline, sorts and filters tables, opens cells. All texts and statistics come from Python.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";

  const make = (name, text = "", attributes = {}) => {
    const element = document.createElement(name);
    element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const draw = (parent, name, attributes, text = "") => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    parent.append(element);
    return element;
  };

  const places = new Map(data.places.map(([work, program, place]) => [`${work}-${program}`, place]));
  const cells = new Map(); // a cell id to the places that it is at: one for each environment
  for (const [key, place] of places) cells.set(place.id, [...(cells.get(place.id) ?? []), key]);
  const ratios = data.programs.map(() => new Map());
  for (const [baseline, work, program, verdict, views] of data.ratios) ratios[baseline].set(`${work}-${program}`, { verdict, views });
  const chosen = []; // the last two places that were opened

  const nameKey = (key) => { const [work, program] = key.split("-"); return `${data.works[work]}, ${data.programs[program]}`; };

  function showGrid() {
    const at = Number(byId("metric").value), baseline = Number(byId("baseline").value), metric = data.metrics[at];
    for (const text of document.querySelectorAll("[data-metric]")) text.hidden = text.dataset.metric !== String(at);
    byId("against").textContent = data.programs[baseline];
    for (const number of document.querySelectorAll(".tested")) number.textContent = data.tested[baseline];
    for (const [key, place] of places) {
      const box = byId(`place-${key}`), ratio = ratios[baseline].get(key), button = make("button", "", { type: "button" });
      const [text, title] = ratio?.views[at] ?? ["", ""];
      box.className = [place.state, ratio && metric.judged ? ratio.verdict : ""].join(" ");
      if (place.figures) {
        button.append(make("b", place.figures[at] || "–", place.best[at] ? { class: "best" } : {}));
        if (metric.judged) button.append(" ", make("i", place.state === "unsound" ? "unsound" : place.spreads[at]));
        button.append(make("small", key.endsWith(`-${baseline}`) ? "baseline" : text || "\u00a0"));
        button.title = title;
      } else button.textContent = place.state === "left-out" ? "left out" : place.status || "failed";
      button.addEventListener("click", () => openCell(key));
      box.replaceChildren(button);
    }
    drawForest(baseline, at);
  }

  // Where a value lies on a log axis from `low` to `high`, from 0 to 1.
  const placeLog = (value, low, high) => (Math.log(value) - Math.log(low)) / (Math.log(high) - Math.log(low));

  function drawForest(baseline, metric) {
    const figure = byId("forest"), all = [...ratios[baseline]].map(([key, { verdict, views }]) => [key, verdict, ...views[metric]]);
    const rows = all.filter(([, , , , numbers]) => numbers.length).slice(0, 60);
    figure.querySelector("svg")?.remove();
    figure.firstChild.textContent = `The baseline's ${data.metrics[metric].title} is 1; log scale, with joint intervals`;
    figure.hidden = !rows.length;
    if (!rows.length) return;
    const centers = rows.map((one) => one[4][0]), least = Math.min(0.8, ...centers), most = Math.max(1.25, ...centers);
    // An interval of two repeats can reach over many powers of ten: it ends at a quarter of the least, four times the most.
    const low = Math.max(least / 4, Math.min(least, ...rows.map((one) => one[4][1]))) / 1.1;
    const high = Math.min(most * 4, Math.max(most, ...rows.map((one) => one[4][2]))) * 1.1;
    const left = 330, width = 900, step = 19, height = rows.length * step + 24;
    const svg = draw(figure, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    draw(svg, "title", {}, `${data.metrics[metric].title} over that of ${data.programs[baseline]}`);
    const at = (value) => left + (width - left - 10) * Math.min(1, Math.max(0, placeLog(value, low, high)));
    for (const tick of [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].filter((one) => one > low && one < high)) {
      draw(svg, "line", { x1: at(tick), x2: at(tick), y1: 0, y2: height - 18, class: tick === 1 ? "axis" : "" });
      draw(svg, "text", { x: at(tick), y: height - 4, "text-anchor": "middle" }, tick);
    }
    rows.forEach(([key, verdict, text, title, [center, from, to]], index) => {
      const group = draw(svg, "g", { class: verdict }), y = index * step + 10, name = nameKey(key);
      // The work stands at the first of its rows alone.
      const [work, program] = key.split("-"), isNext = rows[index - 1]?.[0].split("-")[0] === work, label = isNext ? data.programs[program] : name;
      draw(group, "title", {}, `${name}: ${text}, ${title}`);
      draw(group, "text", { x: left - 8, y: y + 4, "text-anchor": "end" }, label.length > 52 ? `${label.slice(0, 51)}…` : label);
      draw(group, "line", { x1: at(from), x2: at(to), y1: y, y2: y, "stroke-width": 2 });
      draw(group, "circle", { cx: at(center), cy: y, r: 4 });
    });
  }

  function drawSteps(parent, repeat) {
    const all = repeat.steps, low = Math.min(...all), high = Math.max(...all), span = high - low || 1;
    const svg = draw(parent, "svg", { viewBox: "0 0 300 40", role: "img", preserveAspectRatio: "none" });
    draw(svg, "title", {}, `Steps of repeat ${repeat.repeat}, from ${low / 1000} to ${high / 1000} ms`);
    const points = all.map((value, index) => `${(300 * index) / Math.max(1, all.length - 1)},${38 - (36 * (value - low)) / span}`);
    draw(svg, "polyline", { points: points.join(" ") });
  }

  // The command that compares two places: what both share selects the cells, what differs the sides.
  function writeCompare(first, second) {
    const sides = [first, second].map((key) => places.get(key).cell), names = Object.keys(sides[0]).filter((name) => name in sides[1]);
    const differ = names.filter((name) => sides[0][name] !== sides[1][name]);
    const quote = (name, value) => (/^[\w.-]+$/.test(value) ? `${name}=${value}` : `'${name}=${String(value).replaceAll("'", "'\\''")}'`);
    const where = ["model", "phase", "batch_size"].filter((name) => !differ.includes(name)).map((name) => `--where ${quote(name, sides[0][name])}`);
    const both = ["a", "b"].map((side, index) => differ.map((name) => `--${side} ${quote(name, sides[index][name])}`).join(" "));
    return ["benchmatrix compare --run", data.run, ...both, ...where].join(" ");
  }

  function openCell(key) {
    const place = places.get(key), panel = byId("cell");
    if (chosen.at(-1) !== key) chosen.push(key);
    while (chosen.length > 2) chosen.shift();
    for (const box of document.querySelectorAll("[data-chosen]")) box.removeAttribute("data-chosen");
    for (const one of chosen) byId(`place-${one}`).setAttribute("data-chosen", "");
    const close = make("button", "Close", { type: "button" });
    close.addEventListener("click", () => { panel.hidden = true; byId(`place-${key}`).querySelector("button").focus(); });
    panel.replaceChildren(make("h2", nameKey(key)), close);
    const figures = (place.figures ?? []).map((text, index) => text && `${data.metrics[index].title} ${text} ${data.metrics[index].unit}`);
    panel.append(make("p", [...figures, place.repeats, place.note, place.status].filter(Boolean).join(" · ")));
    panel.append(make("p", `cell ${place.id}`, { class: "hint" }));
    if (chosen.length === 2 && chosen[0] !== chosen[1]) {
      const [first] = chosen, baseline = Number(first.split("-")[1]), ratio = ratios[baseline].get(key);
      if (ratio && first.split("-")[0] === key.split("-")[0]) {
        const said = ratio.views.map(([text, title], at) => text + title && [data.metrics[at].title, text, title && `(${title})`].join(" "));
        panel.append(make("p", `Against ${data.programs[baseline]}: ${said.filter(Boolean).join(" · ")}`));
      }
      panel.append(make("p", "Compare the two that were opened last:"), make("code", writeCompare(first, key)));
    } else panel.append(make("p", "Open a second cell for the command that compares the two.", { class: "hint" }));
    const table = make("table");
    for (const repeat of data.steps[place.id] ?? []) {
      const row = make("tr"), steps = make("td");
      row.append(make("th", `repeat ${repeat.repeat}`), make("td", repeat.ms && `${repeat.ms} ms`, { class: "number" }), make("td", repeat.says), make("td", repeat.machine));
      if (repeat.steps?.length > 1) drawSteps(steps, repeat);
      row.append(steps);
      table.append(row);
    }
    panel.append(table);
    panel.hidden = false;
    panel.scrollIntoView({ block: "nearest" });
  }

  function sortBy(table, column, heading) {
    const body = table.tBodies[0], isUp = heading.getAttribute("aria-sort") === "ascending";
    const read = (row) => row.cells[column].textContent.trim();
    const number = (text) => Number.parseFloat(text.replaceAll(",", ""));
    const order = (one, other) => {
      const [a, b] = [number(one), number(other)];
      return Number.isNaN(a) || Number.isNaN(b) ? (Number.isNaN(a) - Number.isNaN(b)) || one.localeCompare(other) : a - b;
    };
    const rows = [...body.rows].sort((one, other) => (isUp ? -1 : 1) * order(read(one), read(other)));
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", isUp ? "descending" : "ascending");
    body.append(...rows);
  }

  // What the filter knows of a cell: its names in the grid and its fields, also those that no name says.
  const describe = ([key, { cell }]) => [nameKey(key), ...["framework", "mode", "device", "precision"].map((name) => cell[name])].join(" ");

  function filter(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean), has = (own) => words.every((word) => own.toLowerCase().includes(word));
    const found = [...places].filter((place) => has(describe(place))).map(([key]) => key.split("-"));
    const [works, programs] = [0, 1].map((at) => new Set(found.map((key) => Number(key[at]))));
    for (const row of document.querySelectorAll("#grid tr")) {
      row.hidden = "row" in row.dataset && !works.has(Number(row.dataset.row));
      [...row.cells].slice(1).forEach((cell, program) => { cell.hidden = !programs.has(program); });
    }
    for (const row of document.querySelectorAll(".sortable tbody tr")) {
      const keys = (row.dataset.cells ?? "").split(" ").flatMap((id) => cells.get(id) ?? []);
      row.hidden = !has([row.textContent, ...keys.map((key) => describe([key, places.get(key)]))].join(" "));
    }
    byId("found").textContent = words.length ? `${found.length} of ${places.size} cells` : "";
  }

  // A link to something that is folded opens it.
  function unfold() {
    const target = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    if (target) target.scrollIntoView();
  }

  for (const table of document.querySelectorAll(".sortable"))
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = make("button", heading.textContent, { type: "button" });
      button.addEventListener("click", () => sortBy(table, column, heading));
      heading.replaceChildren(button);
    });
  for (const row of document.querySelectorAll("#cells tr[data-cells]")) {
    const [key] = cells.get(row.dataset.cells) ?? [];
    if (!key) continue;
    const button = make("button", row.cells[0].textContent, { type: "button" });
    button.addEventListener("click", () => openCell(key));
    row.cells[0].replaceChildren(button);
  }
  if (byId("controls")) {
    byId("controls").hidden = false;
    byId("controls").addEventListener("submit", (event) => event.preventDefault());
    byId("metric").addEventListener("change", showGrid);
    byId("baseline").addEventListener("change", showGrid);
    byId("filter").addEventListener("input", (event) => filter(event.target.value));
    showGrid();
  }
  addEventListener("hashchange", unfold);
  unfold();
  document.documentElement.setAttribute("data-ready", "");
})();
