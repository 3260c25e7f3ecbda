// Shows the details of one cell: figures, steps, distribution, repeats with their conditions, environment, logs, JSON.

const BYTES_PER_GIB = 2 ** 30;

function openCell(cells, row) {
  if (row < 0) return;
  changeState({ cell: cells.nameRow(row) });
  const box = findElement("cell");
  const isQuick = matchMedia("(prefers-reduced-motion: reduce)").matches;
  box.scrollIntoView({ block: "nearest", behavior: isQuick ? "auto" : "smooth" });
  box.focus({ preventScroll: true });
}

function describeFigures(cells, row) {
  const get = (name) => cells.get(name, row);
  const unit = (name, size, label, digits) => (get(name) === null ? null : `${formatSignificant(get(name) / size, digits)} ${label}`);
  const [low, high] = [get("interval_low_seconds"), get("interval_high_seconds")];
  const interval = low === null ? "no interval" : `95 % interval ${formatInterval(low, high, 1e-3, NUM_TIME_DIGITS)}`;
  const repeats = get("disagreement") ? `repeats disagree (${formatInterval(get("least_repeat_seconds"), get("most_repeat_seconds"), 1e-3)} ms), ` : "";
  const center = get("num_ok") ? `${formatMilliseconds(get("center_step_seconds"), NUM_TIME_DIGITS)}, ${repeats}${interval}` : null;
  return makeTerms([
    ["ended", get("ending")],
    ["step time", center],
    ...[95, 99].map((rank) => [`p${rank} of steps`, get(`p${rank}_step_seconds`) === null ? null : formatMilliseconds(get(`p${rank}_step_seconds`), NUM_TIME_DIGITS)]),
    ["throughput", unit("throughput_samples_per_s", 1, "samples/s", NUM_TIME_DIGITS)],
    ["repeats", `${get("num_counted")} count, ${get("num_ok")} of ${get("num_planned")} ended ok`],
    ["process, peak resident", unit("peak_rss_bytes", BYTES_PER_GIB, "GiB")],
    ["GPU, peak allocated", unit("peak_memory_allocated_bytes", BYTES_PER_GIB, "GiB")],
    ["of the device's peak", unit("share_of_peak", 1e-2, "% of its operations")],
    ["GPU energy", unit("gpu_energy_per_sample_joules", 1, "J a sample")],
    ["CPU energy", unit("cpu_energy_per_sample_joules", 1, "J a sample, whole sockets")],
    ["SM clock", unit("gpu_sm_clock_mhz", 1, "MHz")],
    ["temperature", unit("gpu_max_temperature_celsius", 1, "°C")],
    ["device", get("gpu_name") ?? get("cpu_model")],
    ["machines", get("machines")],
    ["note", get("note")],
  ]);
}

const REPEAT_COLUMNS = [
  ["repeat", (row) => String(row.repeat)],
  ["status", (row) => row.status],
  ["step time", (row) => formatMilliseconds(row.center_step_seconds, NUM_TIME_DIGITS)],
  ["verdict", (row) => [row.verdict, row.verdict_reasons, row.notes].filter(Boolean).join(": ")],
  ["SM clock", (row) => (row.gpu_sm_clock_mhz === null ? null : `${formatSignificant(row.gpu_sm_clock_mhz)} MHz`)],
  ["temperature", (row) => (row.gpu_max_temperature_celsius === null ? null : `${formatSignificant(row.gpu_max_temperature_celsius)} °C`)],
  ["power", (row) => (row.gpu_mean_power_watts === null ? null : `${formatSignificant(row.gpu_mean_power_watts)} W`)],
  ["other cores", (row) => (row.cpu_other_cores === null ? null : formatSignificant(row.cpu_other_cores))],
  ["host", (row) => [row.hostname, row.node_name].filter(Boolean).join(", ")],
  ["environment", (row) => row.environment_id],
  ["began", (row) => row.started_at?.slice(0, 19)],
  ["attempt", (row) => [row.attempt, row.num_attempts > 1 ? `the ${row.num_attempts} attempts are in the store` : null].filter(Boolean).join("; ")],
];

function makeRepeatTable(repeats) {
  const clean = repeats.map((repeat) => new Proxy(repeat, { get: (row, name) => row[name] ?? null }));
  const columns = REPEAT_COLUMNS.map(([title, write]) => [title, clean.map(write)]).filter(([, texts]) => texts.some(Boolean));
  const body = clean.map((_, index) => makeElement("tr", {}, columns.map(([, texts], place) =>
    makeElement(place ? "td" : "th", place ? {} : { scope: "row" }, texts[index] ?? NOT_THERE))));
  return makeElement("div", { class: "scroll repeats", role: "region", tabindex: "0", "aria-label": "Repeats" },
    makeElement("table", {}, makeElement("caption", {}, "Repeats"),
      makeElement("thead", {}, makeElement("tr", {}, columns.map(([title]) => makeElement("th", { scope: "col" }, title)))),
      makeElement("tbody", {}, body)));
}

function describeFailure(repeat, found) {
  const kind = [repeat.error_kind, repeat.exit_code === null || repeat.exit_code === undefined ? null : `exit code ${repeat.exit_code}`, repeat.signal].filter(Boolean).join(", ");
  const text = [makeElement("p", {}, makeElement("strong", {}, `Repeat ${repeat.repeat}: ${repeat.status}. `), `${repeat.error_message ?? ""}${kind ? ` (${kind})` : ""}`)];
  if (repeat.stderr_tail) {
    const label = `The end of its output, ${found.logCharacters.toLocaleString("en-US")} characters at most`;
    text.push(makeElement("p", { class: "hint" }, label), makeElement("pre", { tabindex: "0", "aria-label": `Log of repeat ${repeat.repeat}` }, repeat.stderr_tail));
  }
  return text;
}

function makeSeriesFigure(title, note, description) {
  const box = makeElement("div", { class: "plot", role: "img", "aria-label": description });
  return [box, makeElement("figure", {}, makeElement("figcaption", {}, title), box, makeElement("p", { class: "hint" }, note))];
}

async function makeSeries(found) {
  if (!found.series.length) return [];
  const figures = await loadDocument("detail-figures");
  const reduced = found.series.some((own) => own.timed_width > 1 || own.warmup_width > 1);
  const rule = reduced ? `Of each repeat at most ${found.points} points: medians of neighbouring steps, with a bar over their range. ` : "Every step. ";
  const [series, seriesFigure] = makeSeriesFigure("Steps in their order", `${rule}Grey: the warm-up, which enters no figure. The axis does not start at zero. ${noteOnRepeats(found.series)}`,
    describeSeries(found.series));
  const [spread, spreadFigure] = makeSeriesFigure("Distribution of the timed steps", "Line: least to greatest. Pale: p5 to p95. Dark: the quartiles. Tick: the median. Of all steps, not of the points.",
    found.series.map((own) => `repeat ${own.repeat}: from ${formatSignificant(own.quantiles[0])} to ${formatSignificant(own.quantiles[6])} ms, quartiles ${formatInterval(own.quantiles[2], own.quantiles[4])} ms`).join("; "));
  drawSeries(series, found.series, found.plan.cell_id, figures.series);
  drawWithRows(spread, figures.distribution, () => listQuantiles(found.series));
  return [makeElement("div", { class: "panels" }, seriesFigure, spreadFigure)];
}

function makeEnvironments(environments) {
  return environments.map(([name, texts]) => makeElement("details", {}, makeElement("summary", {}, `Environment ${name}`), makeTerms(Object.entries(texts ?? {}))));
}

// Back to the cell of the heat map that was opened last.
function closeCell() {
  changeState({ cell: "" });
  findElement("heat").querySelector('td[tabindex="0"]')?.focus();
}

function makeCellButtons(cells, row) {
  const name = cells.nameRow(row);
  const choose = (key) => makeElement("button", { type: "button", onclick: () => chooseSide(key, name) }, `Side ${key.toUpperCase()}`);
  const only = makeElement("button", { type: "button", onclick: () => changeState({ q: cells.ids[row], filters: new Map() }) }, "Show only this cell");
  const close = makeElement("button", { type: "button", onclick: closeCell }, "Close");
  return makeElement("div", { class: "bar" }, choose("a"), choose("b"), only, close);
}

async function showCell(cells) {
  const box = findElement("cell"), row = cells.findRow(STATE.cell), asked = STATE.cell;
  box.hidden = row === null;
  if (row === null) return;
  const title = makeElement("h3", {}, cells.get("label", row));
  box.replaceChildren(title, makeCellButtons(cells, row), describeFigures(cells, row));
  const found = await findCellDocument(cells, row);
  if (STATE.cell !== asked) return;
  const failed = found.repeats.filter((repeat) => repeat.status !== "ok");
  const address = cells.details ? makeElement("p", {}, makeElement("a", { href: `${cells.details}/${encodeURIComponent(cells.ids[row])}.json` }, "All columns and every step of this cell, as JSON")) : null;
  const protocol = makeTerms(describeProtocol(found.plan));
  box.append(...[
    protocol.childElementCount ? protocol : null,
    ...(await makeSeries(found)),
    found.repeats.length ? makeRepeatTable(found.repeats) : null,
    ...failed.flatMap((repeat) => describeFailure(repeat, found)),
    ...makeEnvironments(found.environments),
    address,
    makeJsonBox(found),
  ].filter(Boolean));
}

function makeJsonBox(found) {
  const rule = found.isFull ? "All columns of its repeats" : "The columns that a report of so many repeats holds; results.parquet has all";
  const text = makeElement("pre", { tabindex: "0", "aria-label": "The cell as JSON" });
  const box = makeElement("details", { class: "as-json" }, makeElement("summary", {}, "The cell as JSON"),
    makeElement("p", { class: "hint" }, `${rule}. The documents themselves are in the store, under ${found.prefix}${found.plan.cell_id}/.`), text);
  box.addEventListener("toggle", () => { if (box.open && !text.textContent) text.textContent = writeCellJson(found); });
  return box;
}

function startDetails(cells) {
  findElement("cell").addEventListener("keydown", (event) => { if (event.key === "Escape") closeCell(); });
  onChange(["cell"], () => showCell(cells));
  showCell(cells);
}
