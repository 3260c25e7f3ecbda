// Shows the comparison of two cells that the reader chose as sides A and B.

const TABLED = "a framework with PyTorch, two modes, a precision with fp32, a GPU with a CPU, several GPUs with one, or the largest batch with the smallest";

function describeSide(cells, key, row, digits) {
  const name = key.toUpperCase();
  if (row === null) return makeElement("p", {}, makeElement("strong", {}, `${name}: `), "not chosen");
  const time = cells.get("num_ok", row)
    ? `${formatMilliseconds(cells.get("center_step_seconds", row), digits)} (${formatInterval(cells.get("interval_low_seconds", row), cells.get("interval_high_seconds", row), 1e-3, digits)})`
    : cells.get("ending", row);
  return makeElement("p", {}, makeElement("strong", {}, `${name}: `), `${cells.get("label", row)}: ${time} `,
    makeElement("button", { type: "button", "aria-label": `Remove side ${name}`, onclick: () => changeState({ [key]: "" }) }, "remove"));
}

// A pair has one verdict and one interval: those of its table, which allow for how many ratios stand there. The ratio of
// a pair that no table has was chosen by the reader, and is said to be that alone.
function describeVerdict(found) {
  const { table, verdict } = found;
  if (table || found.interval === null || found.isConfounded) return verdict;
  return `no verdict, as no table of Comparisons has this pair: they pair ${TABLED}, everything else equal. This ratio alone, which you chose: ${verdict}`;
}

function describeInterval(found, ends) {
  if (!ends) return "";
  const size = found.table?.size ?? 1;
  const together = size > 1 ? `, which allows for all ${size.toLocaleString("en-US")} ratios of the table “${found.table.caption}”` : "";
  return `, 95 % interval${found.table ? "" : " of this ratio alone"} ${ends}${together}`;
}

function describeComparison(cells, one, other) {
  if (one === other) return [makeElement("p", {}, "Both sides are the same cell.")];
  const found = cells.compare(one, other);
  if (found.reason) return [makeElement("p", { class: "verdict" }, found.reason)];
  const [center, ends] = formatRatio(found.ratio.center, found.interval);
  return [
    makeElement("p", { class: "verdict" }, `A against B: ${describeVerdict(found)}.`),
    makeElement("p", {}, `Time of A over time of B: ${center}${describeInterval(found, ends)}.`),
    found.notes.length ? makeElement("ul", {}, found.notes.map((note) => makeElement("li", {}, note))) : null,
  ];
}

function showSides(cells) {
  const box = findElement("sides");
  const [one, other] = [cells.findRow(STATE.a), cells.findRow(STATE.b)];
  if (one === null && other === null) {
    box.replaceChildren();
    return;
  }
  const digits = one === null || other === null ? NUM_TIME_DIGITS : chooseTimeDigits(...[one, other].map((row) => cells.get("center_step_seconds", row)));
  const swap = makeElement("button", { type: "button", onclick: () => changeState({ a: STATE.b, b: STATE.a }) }, "Swap A and B");
  box.replaceChildren(makeElement("h3", {}, "Two cells compared"), describeSide(cells, "a", one, digits), describeSide(cells, "b", other, digits),
    ...(one !== null && other !== null ? [...describeComparison(cells, one, other).filter(Boolean), swap] : []));
}

function chooseSide(key, name) {
  changeState({ [key]: name });
  showSidesInView();
}

// What was chosen stands below the heat map, often out of view: without this, nothing would be seen to happen.
function showSidesInView() {
  findElement("sides").scrollIntoView({ block: "nearest" });
}

function startSides(cells) {
  onChange(["a", "b"], () => showSides(cells));
  showSides(cells);
}
