// Draws the heat map: the rows that are in view, a colour and a sign for each cell.

// Beyond four times faster or slower all colours are alike.
const SHADES = [1.05, 1.25, 1.6, 2.5];
// An arrow points where the time goes: up is longer, as the plus of a number.
const SIGNS = {
  longer: ["▲", "takes longer than the baseline: its interval, which allows for all ratios of its table or else of this map, excludes equality"],
  shorter: ["▼", "takes less time than the baseline, by the same rule; the number is by how much longer the baseline takes"],
  same: ["≈", "no difference shown: the number is what was measured"],
  confounded: ["⇄", MACHINES_DIFFER],
  single: ["·", "no verdict: one repeat, no interval"],
  baseline: ["◆", "the baseline"],
  "not-compared": ["≠", "measured, but cannot be compared with the baseline"],
  invalid: ["!", "no repeat was measured under sound conditions"],
  failed: ["✕", "no repeat ended ok"],
  missing: ["?", "no result: the command of the run, given again, measures what is missing"],
  "left-out": ["∅", "left out: it cannot run here"],
};
const HEAT = { map: null, comparisons: null, baseline: "", lines: [], columns: [], numHidden: 0, focus: null };

// Which of SIGNS a cell has; `alone` where step times are shown.
function findKind(cells, row) {
  const state = cells.get("state", row), { kind, pValue, adjusted, speed, isConfounded } = HEAT.comparisons[row];
  if (state === "failed" || state === "missing" || state === "left out") return state.replace(" ", "-");
  if (state === "invalid") return "invalid";
  if (kind !== "compared") return kind === "no-baseline" ? "not-compared" : kind;
  if (isConfounded) return "confounded";
  if (pValue === null) return "single";
  if (adjusted >= 1 - CONFIDENCE) return "same";
  return speed >= 1 ? "shorter" : "longer";
}

// What a cell shows: its kind, its shade from -4 (longer) to 4 (shorter), a number, and all of it in words.
function describeCell(cells, row) {
  const kind = findKind(cells, row), comparison = HEAT.comparisons[row];
  const time = formatMilliseconds(cells.get("center_step_seconds", row));
  const sign = SIGNS[kind]?.[1];
  if (!cells.get("num_ok", row)) return { kind, shade: 0, text: kind.replace("-", " "), words: `${cells.get("ending", row)}; ${sign}` };
  if (comparison.kind !== "compared") {
    const words = [sign, comparison.reason, time].filter(Boolean).join("; ");
    return { kind, shade: 0, text: time, words };
  }
  const { speed } = comparison, factor = Math.max(speed, 1 / speed);
  // A colour and a word say which takes longer: without that verdict there is neither.
  const isShown = kind === "longer" || kind === "shorter";
  const shade = isShown ? SHADES.filter((bound) => factor >= bound).length * (speed >= 1 ? 1 : -1) : 0;
  const text = isShown ? describeTime(1 / speed) : formatTimeRatio(1 / speed);
  const untabled = comparison.table ? "" : "; no table has this pair";
  return { kind, shade, text, words: `${text} beside the baseline${quoteInterval(comparison)}, ${sign}${untabled}; ${time}` };
}

// The interval that decides what a cell shows: of the time of the cell over that of the baseline.
function quoteInterval({ ratio, pValue, numTests }) {
  return pValue === null ? "" : ` (95 % interval of the ratio ${formatRatio(ratio.center, findInterval(ratio, numTests))[1]})`;
}

function arrangeHeat(cells) {
  HEAT.map = arrangeCells(cells);
  HEAT.baseline = findBaseline(cells, HEAT.map);
  HEAT.comparisons = compareWithBaseline(cells, HEAT.map, HEAT.baseline);
}

// Keeps the rows and columns that have a cell which passes the filter and was not left out, if there is one.
function filterHeat(cells) {
  const { map } = HEAT;
  const isHere = (row) => cells.get("state", row) !== "left out";
  const isLeftOut = cells.ids.some((_, row) => PASSING.rows[row] && isHere(row)) ? (row) => !isHere(row) : () => false;
  const passes = (row) => row >= 0 && PASSING.rows[row] === 1 && !isLeftOut(row);
  HEAT.lines = map.rows.map((_, number) => number).filter((number) => map.places[number].some(passes));
  const used = new Uint8Array(map.columns.length);
  for (const number of HEAT.lines) map.places[number].forEach((row, column) => { if (passes(row)) used[column] = 1; });
  HEAT.columns = map.columns.map((_, column) => column).filter((column) => used[column]);
  const shown = new Set(HEAT.lines.flatMap((line) => HEAT.columns.map((column) => map.places[line][column])));
  HEAT.numHidden = cells.ids.filter((_, row) => PASSING.rows[row] && isLeftOut(row) && !shown.has(row)).length;
}

function makeHeatCell(cells, line, column) {
  const row = HEAT.map.places[line][column];
  const key = `${line}:${column}`;
  const attributes = { role: "gridcell", tabindex: HEAT.focus === key ? "0" : "-1", "data-key": key };
  if (row < 0) return makeElement("td", { ...attributes, class: "heat-cell unplanned", "aria-label": "not planned" });
  if (!PASSING.rows[row]) return makeElement("td", { ...attributes, class: "heat-cell filtered", "aria-label": "does not pass the filter" });
  const shown = describeCell(cells, row);
  const sign = SIGNS[shown.kind]?.[0] ?? "";
  const name = cells.nameRow(row);
  const classes = ["heat-cell", shown.kind, `shade${shown.shade}`];
  if (name === STATE.cell) classes.push("open");
  const side = name === STATE.a ? "A" : name === STATE.b ? "B" : "";
  const label = `${cells.get("label", row)}: ${shown.words}${side ? `; side ${side}` : ""}`;
  return makeElement("td", { ...attributes, class: classes.join(" "), "aria-label": label, title: label },
    makeElement("span", { class: "sign", "aria-hidden": "true" }, sign), shown.text,
    side && makeElement("span", { class: "side-mark", "aria-hidden": "true" }, side));
}

function makeHeatLine(cells, index) {
  const line = HEAT.lines[index];
  const { name } = HEAT.map.rows[line];
  return makeElement("tr", { "aria-rowindex": index + 2 },
    makeElement("th", { scope: "row", role: "rowheader", title: name }, makeElement("span", {}, name)),
    HEAT.columns.map((column) => makeHeatCell(cells, line, column)));
}

function noteOnHidden() {
  return HEAT.numHidden ? ` ${countThings(HEAT.numHidden, "cell")} that could not run here ${HEAT.numHidden === 1 ? "is" : "are"} not in it: see What failed or was left out.` : "";
}

// What a reader of tenants must know; what they do together is in the section on sharing.
function noteOnTenants() {
  return CELLS.fields.some((field) => field.name === "tenants") ? " Of a cell with tenants: the steps of its first one, not of all together." : "";
}

function hasFigures() {
  return CELLS.ids.some((_, row) => CELLS.get("num_ok", row));
}

function drawHeatHead() {
  const heads = HEAT.columns.map((column) => {
    const { name } = HEAT.map.columns[column];
    const heading = HEAT.map.columns.length === 1 && name === ALL_CELLS ? STEP_TIME : name;
    const differing = listDiffering(HEAT.map, HEAT.map.columns[column], HEAT.baseline);
    const note = differing.length > 1 ? makeElement("small", {}, `differs in ${differing.join(", ")}`) : "";
    return makeElement("th", { scope: "col", role: "columnheader", class: name === HEAT.baseline ? "baseline" : null }, heading, note);
  });
  findElement("heat").tHead.replaceChildren(makeElement("tr", { "aria-rowindex": 1 }, makeElement("td", {}), heads));
  const what = !hasFigures() ? "How each cell ended" : HEAT.baseline === STEP_TIME ? "Step time of each cell" : `Step time of each cell beside the baseline (${HEAT.baseline}); orange takes longer, blue less time`;
  findElement("heat-scroll").hidden = !HEAT.lines.length;
  findElement("heat-caption").textContent = !HEAT.lines.length ? "No cell passes what is chosen above; “Show all” lifts it." : `${what}: ${countThings(HEAT.lines.length, "row")}, ${countThings(HEAT.columns.length, "column")}.${noteOnHidden()}${noteOnTenants()}`;
}

// Explains the signs that occur.
function drawLegend(cells) {
  const kinds = new Set(cells.ids.map((_, row) => findKind(cells, row)));
  const items = Object.entries(SIGNS).filter(([kind]) => kinds.has(kind));
  if (HEAT.map.places.some((places) => places.some((row) => row < 0))) items.push(["unplanned", ["\u00a0", "hatched: not planned in the matrix, or not passing the filter"]]);
  findElement("heat-legend").replaceChildren(...items.map(([kind, [sign, words]]) =>
    makeElement("li", {}, makeElement("span", { class: `swatch ${kind}`, "aria-hidden": "true" }, sign), ` ${words}`)));
}

function drawControls(cells) {
  const select = findElement("baseline");
  const names = [...HEAT.map.columns.map((column) => column.name), ...(STATE.a ? [SIDE_A] : []), STEP_TIME];
  select.replaceChildren(...names.map((name) => makeElement("option", { value: name, selected: name === HEAT.baseline },
    name === STEP_TIME ? "none: show step times" : name)));
  const columns = listColumnFields(cells).map((field) => field.name);
  const fields = cells.fields.filter((field) => field.texts.length > 1);
  // Of one cell there is nothing to choose, and without figures nothing to compare with.
  select.closest(".bar").hidden = cells.size < 2;
  for (const element of [select, select.previousElementSibling]) element.hidden = !hasFigures();
  document.querySelector("#overview-tools .keys").hidden = cells.size < 2;
  findElement("column-fields").replaceChildren("Columns: ", ...fields.map((field) => {
    const input = makeElement("input", { type: "checkbox", checked: columns.includes(field.name), onchange: () => {
      const names = input.checked ? [...columns, field.name] : columns.filter((name) => name !== field.name);
      changeState({ columns: names, baseline: carryBaseline(cells, HEAT.map, names) });
      findElement("column-fields").querySelector(`[data-field="${field.name}"]`)?.focus();
    }, "data-field": field.name });
    return makeElement("label", { class: "inline" }, input, ` ${field.title}`);
  }));
}

function startHeat(cells) {
  const rows = new VirtualRows(findElement("heat-scroll"), findElement("heat"), (index) => makeHeatLine(cells, index));
  printRows(rows);
  const arrange = () => { arrangeHeat(cells); drawLegend(cells); drawControls(cells); show(); };
  const show = () => {
    filterHeat(cells);
    drawHeatHead();
    const first = HEAT.lines.length && HEAT.columns.length ? `${HEAT.lines[0]}:${HEAT.columns[0]}` : null;
    const [line, column] = (HEAT.focus ?? "").split(":").map(Number);
    if (!HEAT.focus || !HEAT.lines.includes(line) || !HEAT.columns.includes(column)) HEAT.focus = first;
    findElement("heat").setAttribute("aria-colcount", HEAT.columns.length + 1);
    rows.show(HEAT.lines.length);
  };
  findElement("baseline").addEventListener("change", (event) => changeState({ baseline: event.target.value }));
  onChange(["columns", "baseline"], arrange);
  onChange(["a"], () => (HEAT.baseline === SIDE_A ? arrange() : drawControls(cells)));
  onChange(["filters", "q"], show);
  onChange(["a", "b", "cell"], () => rows.draw());
  startHeatKeys(cells, rows);
  arrange();
}

function startHeatKeys(cells, rows) {
  const table = findElement("heat");
  const rowAt = (key) => { const [line, column] = key.split(":").map(Number); return HEAT.map.places[line][column]; };
  const focusAt = (index, place) => {
    HEAT.focus = `${HEAT.lines[index]}:${HEAT.columns[place]}`;
    rows.reveal(index);
    table.querySelector(`[data-key="${HEAT.focus}"]`)?.focus();
  };
  table.addEventListener("click", (event) => {
    const cell = event.target.closest("td[data-key]");
    if (!cell) return;
    HEAT.focus = cell.dataset.key;
    openCell(cells, rowAt(HEAT.focus));
  });
  table.addEventListener("keydown", (event) => {
    const cell = event.target.closest("td[data-key]");
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    const [line, column] = cell.dataset.key.split(":").map(Number);
    const index = HEAT.lines.indexOf(line), place = HEAT.columns.indexOf(column);
    const lastLine = HEAT.lines.length - 1, lastPlace = HEAT.columns.length - 1;
    const moves = {
      ArrowDown: [Math.min(index + 1, lastLine), place], ArrowUp: [Math.max(index - 1, 0), place],
      ArrowRight: [index, Math.min(place + 1, lastPlace)], ArrowLeft: [index, Math.max(place - 1, 0)],
      Home: [index, 0], End: [index, lastPlace],
      PageDown: [Math.min(index + 10, lastLine), place], PageUp: [Math.max(index - 10, 0), place],
    };
    const row = rowAt(cell.dataset.key), side = { a: "a", b: "b" }[event.key.toLowerCase()];
    if (moves[event.key]) focusAt(...moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") openCell(cells, row);
    else if (side && row >= 0) { changeState({ [side]: cells.nameRow(row) }); focusAt(index, place); showSidesInView(); }
    else return;
    event.preventDefault();
  });
}
