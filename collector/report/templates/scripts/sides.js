// Shows the comparison of two cells that the reader chose as sides A and B.

const TABLED = "a framework with PyTorch, two modes, a precision with fp32, a GPU with a CPU, or several GPUs with one";

function describeSide(cells, key, row, digits) {
  const name = key.toUpperCase();
  if (row === null) return makeElement("p", {}, makeElement("strong", {}, `${name}: `), "not chosen");
  const time = cells.get("num_ok", row)
    ? `${formatMilliseconds(cells.get("center_step_seconds", row), digits)} (${formatInterval(cells.get("interval_low_seconds", row), cells.get("interval_high_seconds", row), 1e-3)})`
    : cells.get("ending", row);
  return makeElement("p", {}, makeElement("strong", {}, `${name}: `), `${cells.get("label", row)}: ${time} `,
    makeElement("button", { type: "button", "aria-label": `Remove side ${name}`, onclick: () => changeState({ [key]: "" }) }, "remove"));
}

// A pair has one verdict: that of its table, which allows for how many ratios stand there. What is to be said before the
// verdict of the ratio alone.
function judgeByTable(cells, one, other, found) {
  if (cells.isUnshown(one, other)) return `${NO_DIFFERENCE} by its interval together with the others of its table; this ratio alone: `;
  if (cells.isTabled(one, other) || found.interval === null || found.isConfounded) return "";
  return `no verdict, as no table of Comparisons has this pair: they pair ${TABLED}, everything else equal. This ratio alone, which you chose: `;
}

function describeComparison(cells, one, other) {
  if (one === other) return [makeElement("p", {}, "Both sides are the same cell.")];
  const found = cells.compare(one, other);
  if (found.reason) return [makeElement("p", { class: "verdict" }, found.reason)];
  const [center, ends] = formatRatio(found.ratio.center, found.interval);
  const interval = ends ? `, 95 % interval of this ratio alone ${ends}` : "";
  const verdict = `${judgeByTable(cells, one, other, found)}${found.verdict}`;
  return [
    makeElement("p", { class: "verdict" }, `A against B: ${verdict}.`),
    makeElement("p", {}, `Time of A over time of B: ${center}${interval}.`),
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
  const digits = one === null || other === null ? 3 : chooseTimeDigits(...[one, other].map((row) => cells.get("center_step_seconds", row)));
  const swap = makeElement("button", { type: "button", onclick: () => changeState({ a: STATE.b, b: STATE.a }) }, "Swap A and B");
  box.replaceChildren(makeElement("h3", {}, "Two cells compared"), describeSide(cells, "a", one, digits), describeSide(cells, "b", other, digits),
    ...(one !== null && other !== null ? [...describeComparison(cells, one, other).filter(Boolean), swap] : []));
}

function startSides(cells) {
  onChange(["a", "b"], () => showSides(cells));
  showSides(cells);
}
