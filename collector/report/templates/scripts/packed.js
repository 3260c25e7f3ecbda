// Reads what collector/report/packing.py packed: base64 of gzip of JSON, whose columns hold numbers or coded texts.

const PACKED_DOCUMENTS = new Map();
// The texts that other documents name by their number among the cells: see startPage.
const POOLS = {};

async function unpackText(text) {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return expandColumns(await new Response(stream).json());
}

// Makes codes of the deltas of all columns in a document, and gives those that use a pool its texts.
function expandColumns(value) {
  if (Array.isArray(value)) {
    if (value[0] !== null && typeof value[0] === "object") value.forEach(expandColumns);
  } else if (value !== null && typeof value === "object") {
    if (Array.isArray(value.deltas)) {
      let code = 0;
      value.codes = value.deltas.map((delta) => (code += delta));
    }
    if (value.pool && value.codes) value.texts = POOLS[value.pool];
    if (!value.codes && !value.numbers && !value.values) Object.values(value).forEach(expandColumns);
  }
  return value;
}

function loadDocument(name) {
  if (!PACKED_DOCUMENTS.has(name)) PACKED_DOCUMENTS.set(name, unpackText(findElement(`data-${name}`).textContent));
  return PACKED_DOCUMENTS.get(name);
}

// Returns one value of a packed column; null where it is missing.
function readValue(column, row) {
  if (column.codes) return column.codes[row] < 0 ? null : column.texts[column.codes[row]];
  return (column.numbers ?? column.values)[row];
}

function readRow(columns, row) {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, readValue(column, row)]));
}

function listRows(frame) {
  return Array.from({ length: frame.size }, (_, row) => readRow(frame.columns, row));
}
