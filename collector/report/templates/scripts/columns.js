// The shape of the heat map: which fields are columns, which cell stands where, and the ratio of each to its baseline.

const STEP_TIME = "step time";
const SIDE_A = "side A";
const ALL_CELLS = "all cells";

function listColumnFields(cells) {
  const names = STATE.columns ?? cells.fields.filter((field) => field.place === "column").map((field) => field.name);
  return cells.fields.filter((field) => names.includes(field.name));
}

function compareCodes(one, other) {
  for (let index = 0; index < one.codes.length; index += 1) {
    if (one.codes[index] !== other.codes[index]) return one.codes[index] - other.codes[index];
  }
  return 0;
}

// Groups cells by their codes in `fields`: each group has its codes, its name and its number, in the order of the codes.
function groupByFields(cells, fields) {
  const groups = new Map();
  const numbers = new Array(cells.size);
  for (let row = 0; row < cells.size; row += 1) {
    const codes = fields.map((field) => field.codes[row]);
    const key = codes.join(",");
    if (!groups.has(key)) groups.set(key, { codes, key, name: nameGroup(cells, fields, row) });
    numbers[row] = key;
  }
  const sorted = [...groups.values()].sort(compareCodes);
  sorted.forEach((group, number) => { group.number = number; });
  return { groups: sorted, of: numbers.map((key) => groups.get(key).number) };
}

function nameGroup(cells, fields, row) {
  const texts = fields.map((field) => cells.describeField(field, row));
  const present = texts.filter((text, index) => text !== fields[index].absent);
  return (present.length ? present : texts).join(", ");
}

function nameRowGroup(fields, codes) {
  const texts = fields.map((field, index) => field.texts[codes[index]]);
  const [model, phase] = [fields.findIndex((field) => field.name === "model"), fields.findIndex((field) => field.name === "phase")];
  if (model === 0 && phase === 1) texts.splice(0, 2, `${texts[0]} ${texts[1]}`);
  return texts.join(", ");
}

// The whole heat map: rows and columns with the cell at each place (-1: none was planned).
function arrangeCells(cells) {
  const columnFields = listColumnFields(cells);
  const rowFields = cells.fields.filter((field) => !columnFields.includes(field));
  const columns = groupByFields(cells, columnFields), rows = groupByFields(cells, rowFields);
  for (const group of rows.groups) group.name = nameRowGroup(rowFields, group.codes) || ALL_CELLS;
  for (const group of columns.groups) group.name = group.name || ALL_CELLS;
  const places = rows.groups.map(() => new Int32Array(columns.groups.length).fill(-1));
  for (let row = 0; row < cells.size; row += 1) places[rows.of[row]][columns.of[row]] = row;
  return { columnFields, columns: columns.groups, rows: rows.groups, places, columnOf: columns.of, rowOf: rows.of };
}

// The column that most cells can be compared with: the first one with the most cells that have sound figures. Columns
// of different work have times that are not compared.
function chooseBaseline(cells, map) {
  if (map.columns.length < 2 || listColumnFields(cells).some((field) => field.is_work)) return STEP_TIME;
  const count = (column, isGood) => map.places.filter((line) => line[column] >= 0 && isGood(line[column])).length;
  // Sound figures count first; those of cells without a sound repeat only where as many are sound.
  const scores = map.columns.map((_, column) =>
    count(column, (row) => cells.get("num_sound", row) > 0) * (cells.size + 1) + count(column, (row) => cells.get("num_ok", row) > 0));
  return map.columns[scores.indexOf(Math.max(...scores))].name;
}

// The name of the chosen baseline when other fields are columns: the column that has the same cell. Empty where none is
// chosen, or columns would be of different work.
function carryBaseline(cells, map, names) {
  const fields = cells.fields.filter((field) => names.includes(field.name));
  if (!STATE.baseline || [STEP_TIME, SIDE_A].includes(STATE.baseline)) return STATE.baseline;
  const row = map.columnOf.indexOf(map.columns.findIndex((column) => column.name === STATE.baseline));
  return row < 0 || fields.some((field) => field.is_work) ? "" : nameGroup(cells, fields, row) || ALL_CELLS;
}

function findBaseline(cells, map) {
  const isKnown = [STEP_TIME, SIDE_A, ...map.columns.map((column) => column.name)].includes(STATE.baseline);
  return isKnown ? STATE.baseline : chooseBaseline(cells, map);
}

// The titles of the fields in which a column differs from the baseline's; none where the baseline is no column.
function listDiffering(map, column, baseline) {
  const reference = map.columns.find((group) => group.name === baseline);
  return reference ? map.columnFields.filter((_, index) => column.codes[index] !== reference.codes[index]).map((field) => field.title) : [];
}

// Each cell's comparison with its baseline: the cell of its row in the baseline's column, or side A.
function compareWithBaseline(cells, map, baseline) {
  const column = map.columns.findIndex((group) => group.name === baseline);
  const side = cells.findRow(STATE.a);
  const found = new Array(cells.size);
  for (let row = 0; row < cells.size; row += 1) {
    const reference = baseline === SIDE_A ? side : column < 0 ? null : map.places[map.rowOf[row]][column];
    found[row] = compareQuickly(cells, row, reference);
  }
  // Over all cells, whatever is filtered: a filter must not make a difference out of none.
  const tested = found.filter((comparison) => comparison.pValue !== null);
  // A pair that a table has is judged with the ratios of that table, so that it has one verdict whatever the baseline is.
  for (const comparison of tested) {
    comparison.numTests = comparison.table?.size ?? tested.length;
    comparison.adjusted = adjustPValue(comparison.pValue, comparison.numTests);
  }
  return found;
}

// The ratio and p-value alone: intervals are computed where they are shown.
function compareQuickly(cells, row, reference) {
  if (reference === null) return { kind: "alone", pValue: null };
  if (reference === row) return { kind: "baseline", pValue: null };
  if (reference < 0) return { kind: "no-baseline", pValue: null, reason: "not compared: the baseline has no such cell" };
  const reason = cells.explainNotComparable(row, reference);
  if (reason !== null) return { kind: "not-compared", pValue: null, reason, reference };
  const ratio = cells.estimateTimeRatio(row, reference);
  const isConfounded = cells.isConfounded(row, reference);
  const pValue = isConfounded ? null : findPValue(ratio);
  return { kind: "compared", ratio, speed: 1 / ratio.center, pValue, isConfounded, reference, table: cells.findTable(row, reference) };
}
