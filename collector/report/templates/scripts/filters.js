// The filters: which cells the page shows. Every plot, table and the heat map ask `PASSING`.

const PASSING = { rows: null, ids: null, count: 0 };
const MAX_LISTED_VALUES = 500;
// What people type, and the words of cells that it stands for: each word of the search has to be in a cell's texts, or one
// of those that mean the same.
const SEARCH_PHRASES = [
  [/\bout[ -]of[ -]memory\b/g, "oom"], [/\b(half|mixed)[ -]precision\b/g, "half"], [/\bsingle[ -]precision\b/g, "fp32"],
  [/\btorch[ .]compile\b/g, "pytorch compiled"], [/\btime[ -]out\b/g, "timeout"], [/\bbatch[ -]?size\b/g, "batch"],
  [/\b(?:bs|batch)[ =:]?(\d+)\b/g, "batch\u00a0$1"], [/\bleft[ -]out\b/g, "left\u00a0out"],
];
const SYNONYMS = new Map(Object.entries({
  inference: ["infer"], inferring: ["infer"], serving: ["infer"], prediction: ["infer"], forward: ["infer"],
  training: ["train"], trained: ["train"], fit: ["train"],
  half: ["fp16", "bf16"], float16: ["fp16"], bfloat16: ["bf16"], float32: ["fp32"], single: ["fp32"],
  tf: ["tensorflow"], keras: ["tensorflow", "jax"], torch: ["pytorch"], flax: ["jax"],
  xla: ["tensorflow compiled", "jax compiled"], inductor: ["pytorch compiled"], compile: ["compiled"], jit: ["compiled"],
  cuda: ["gpu"], crashed: ["failed"], error: ["failed"], skipped: ["left out"], absent: ["missing"],
}));

// Of each word of a search, the texts that it stands for, itself among them.
function listSought(search) {
  const text = SEARCH_PHRASES.reduce((known, [phrase, word]) => known.replace(phrase, word), search.toLowerCase());
  return text.split(/[ \t\n]+/).filter(Boolean).map((part) => {
    const word = part.replaceAll("\u00a0", " ");
    const others = SYNONYMS.get(word) ?? [];
    return others.length && word.length < 3 ? others : [word, ...others]; // tf is in tf32, too
  });
}

// Brings PASSING up to date: a cell passes if each field has one of the chosen values and its label every word.
function applyFilters(cells) {
  const words = listSought(STATE.q);
  const chosen = cells.fields
    .filter((field) => STATE.filters.has(field.name))
    .map((field) => ({ codes: field.codes, wanted: field.texts.map((text) => STATE.filters.get(field.name).has(text)) }));
  const rows = new Uint8Array(cells.size);
  const ids = new Set();
  let count = 0;
  for (let row = 0; row < cells.size; row += 1) {
    const passes = chosen.every(({ codes, wanted }) => wanted[codes[row]]) && words.every((alike) =>
      alike.some((word) => cells.names[row].includes(word) || cells.ids[row].includes(word)));
    if (!passes) continue;
    rows[row] = 1;
    ids.add(cells.ids[row]);
    count += 1;
  }
  Object.assign(PASSING, { rows, ids, count });
}

// Whether something passes that is of these cells: of no cell at all, or of one at least that passes.
function passesCells(ids) {
  return !ids.length || PASSING.count === PASSING.rows.length || ids.some((id) => PASSING.ids.has(id));
}

function isFiltered() {
  return STATE.q !== "" || STATE.filters.size > 0;
}

function chooseValue(name, text, isChosen) {
  const filters = new Map(STATE.filters);
  const values = new Set(filters.get(name) ?? []);
  if (isChosen) values.add(text);
  else values.delete(text);
  if (values.size) filters.set(name, values);
  else filters.delete(name);
  changeState({ filters });
}

function makeFilter(field) {
  const chosen = makeElement("span", { class: "chosen" });
  const list = makeElement("div", { class: "values", role: "group", "aria-label": field.title });
  const box = makeElement("details", { class: "filter" }, makeElement("summary", {}, `${field.title} `, chosen), list);
  const boxes = new Map();
  const fill = () => {
    if (boxes.size) return;
    for (const text of field.texts.slice(0, MAX_LISTED_VALUES)) {
      const input = makeElement("input", { type: "checkbox", onchange: () => chooseValue(field.name, text, input.checked) });
      boxes.set(text, input);
      list.append(makeElement("label", {}, input, ` ${text}`));
    }
    const others = field.texts.length - MAX_LISTED_VALUES;
    if (others > 0) list.append(makeElement("p", {}, `${countThings(others, "more value")}: search for them.`));
    show();
  };
  const show = () => {
    const values = STATE.filters.get(field.name);
    chosen.textContent = values ? (values.size === 1 ? [...values][0] : `${values.size} of ${field.texts.length}`) : "all";
    box.classList.toggle("active", Boolean(values));
    for (const [text, input] of boxes) input.checked = Boolean(values?.has(text));
  };
  box.addEventListener("toggle", () => {
    if (!box.open) return;
    fill();
    for (const other of document.querySelectorAll("details.filter[open]")) if (other !== box) other.open = false;
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !box.open) return;
    box.open = false;
    box.querySelector("summary").focus();
  });
  onChange(["filters"], show);
  show();
  return box;
}

function describeFilter() {
  const parts = [...STATE.filters].map(([name, values]) => {
    const title = CELLS.fields.find((field) => field.name === name)?.title ?? name;
    return `${title}: ${[...values].join(", ")}`;
  });
  if (STATE.q) parts.push(`“${STATE.q}”`);
  return parts.join("; ");
}

// Cells of the matrix that were left out are no cells of the run: they have a place in the map where nothing else has one.
function noteOnLeftOut(cells) {
  const number = cells.ids.filter((_, row) => cells.get("state", row) === "left out").length;
  return number ? `: ${(cells.size - number).toLocaleString("en-US")} of the run, and ${number.toLocaleString("en-US")} of its matrix that could not run here` : "";
}

function showFilterCount(cells) {
  const total = countThings(cells.size, "cell");
  const count = findElement("filter-count"), notice = findElement("filter-notice");
  count.textContent = isFiltered() ? `${PASSING.count.toLocaleString("en-US")} of ${total} pass. Every plot and table follows.` : `${total}, all shown${noteOnLeftOut(cells)}.`;
  notice.hidden = !isFiltered();
  for (const note of document.querySelectorAll("[data-unfiltered]")) {
    note.hidden = !isFiltered();
    note.textContent = `The sentences are of all ${total}, whatever the filter.`;
  }
  if (notice.hidden) return;
  const reset = makeElement("button", { type: "button", onclick: resetFilters }, "Show all");
  notice.replaceChildren(`Filter: ${PASSING.count.toLocaleString("en-US")} of ${total} (${describeFilter()}) `, reset);
}

function resetFilters() {
  changeState({ filters: new Map(), q: "" });
}

function startFilters(cells) {
  const search = findElement("search");
  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => changeState({ q: search.value.trim() }), 120);
  });
  findElement("filters").addEventListener("submit", (event) => event.preventDefault());
  findElement("filter-reset").addEventListener("click", resetFilters);
  findElement("filter-fields").append(...cells.fields.filter((field) => field.texts.length > 1).map(makeFilter));
  for (const name of ["click", "focusin"]) {
    document.addEventListener(name, (event) => {
      for (const box of document.querySelectorAll("details.filter[open]")) if (!box.contains(event.target)) box.open = false;
    });
  }
  search.closest(".bar").hidden = cells.size < 2;
  const update = () => {
    applyFilters(cells);
    if (document.activeElement !== search) search.value = STATE.q;
    showFilterCount(cells);
  };
  onChange(["filters", "q"], update);
  update();
}
