// Reads what collector/report/packing.py packed: base64 of gzip of JSON, whose columns hold numbers or coded texts.

const PACKED_DOCUMENTS = new Map();

async function unpackText(text) {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

function loadDocument(name) {
  if (!PACKED_DOCUMENTS.has(name)) PACKED_DOCUMENTS.set(name, unpackText(findElement(`data-${name}`).textContent));
  return PACKED_DOCUMENTS.get(name);
}

// Returns one value of a packed column; null where it is missing.
function readValue(column, row) {
  if (column.texts) return column.codes[row] < 0 ? null : column.texts[column.codes[row]];
  return (column.numbers ?? column.values)[row];
}

function readRow(columns, row) {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, readValue(column, row)]));
}

function listRows(frame) {
  return Array.from({ length: frame.size }, (_, row) => readRow(frame.columns, row));
}
