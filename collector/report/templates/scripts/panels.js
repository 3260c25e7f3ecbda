// Decides what a panel of a figure draws: the rows that pass the filter, as many as can be told apart, and their words.
// collector/report/drawn_panels.py does the same for files, without a filter.

const CELL_ID_COLUMNS = ["cell_id", "cell_id_subject", "cell_id_reference"];
const MAX_TOLD = 12;

// The figure with its rows: `byPanel` has the data sets of each panel, under "" those of a figure without panels.
function readFigure(packed) {
  const data = Object.fromEntries(Object.entries(packed.data).map(([name, frame]) => [name, listRows(frame)]));
  const isOfCells = Object.values(packed.data).some((frame) => CELL_ID_COLUMNS.some((name) => name in frame.columns));
  return { ...packed, isOfCells, byPanel: packed.panels.length ? groupByPanel(packed.panels, data) : new Map([["", data]]) };
}

// Rows without a panel, such as reference lines, are in all of them.
function groupByPanel(panels, data) {
  const groups = new Map(panels.map((title) => [title, Object.fromEntries(Object.keys(data).map((name) => [name, []]))]));
  for (const [name, rows] of Object.entries(data)) {
    for (const row of rows) {
      if (row.panel !== undefined && row.panel !== null) groups.get(row.panel)?.[name].push(row);
      else for (const group of groups.values()) group[name].push(row);
    }
  }
  return groups;
}

function listCellIds(row) {
  return CELL_ID_COLUMNS.map((name) => row[name]).filter(Boolean);
}

// The rows of a panel that pass; null where none is left that is of a cell.
function selectRows(figure, title) {
  const found = mapRows(figure.byPanel.get(title), (rows) => rows.filter((row) => passesCells(listCellIds(row))));
  const isEmpty = figure.isOfCells && !Object.values(found).some((rows) => rows.some((row) => listCellIds(row).length));
  return isEmpty ? null : found;
}

function mapRows(data, change) {
  return Object.fromEntries(Object.entries(data).map(([name, rows]) => [name, change(rows)]));
}

// As many things as the figure's limit lets a panel draw, and a note on the others.
function limitRows(data, limit) {
  const things = limit ? [...new Set(Object.values(data).flatMap((rows) => rows.map((row) => row[limit.column])))] : [];
  const known = things.filter((thing) => thing !== undefined && thing !== null);
  if (!limit || known.length <= limit.most) return { data, note: "" };
  const step = (known.length - 1) / (limit.most - 1);
  const kept = new Set(limit.is_spread ? Array.from({ length: limit.most }, (_, index) => known[Math.round(index * step)]) : known.slice(0, limit.most));
  const count = known.length.toLocaleString("en-US");
  return {
    data: mapRows(data, (rows) => rows.filter((row) => row[limit.column] === undefined || row[limit.column] === null || kept.has(row[limit.column]))),
    note: `Drawn are ${limit.most} of ${count} ${limit.what}. Filter to see others.`,
  };
}

function writeNumber(value) {
  return Number.isInteger(value) ? value.toLocaleString("en-US") : formatSignificant(value);
}

// What the rows say that have all columns which `says` names in braces.
function describeRows(data, says) {
  const names = [...says.matchAll(/\{([^}]+)\}/g)].map((found) => found[1]);
  const known = Object.values(data).flat().filter((row) => row.cell_id !== null && names.every((name) => name in row));
  const write = (value) => (value === null ? "unknown" : typeof value === "string" ? value : writeNumber(value));
  const texts = [...new Set(known.map((row) => says.replace(/\{([^}]+)\}/g, (_, name) => write(row[name]))))];
  const more = texts.length > MAX_TOLD ? `; ${texts.length - MAX_TOLD} more in the table` : "";
  return texts.slice(0, MAX_TOLD).join("; ") + more;
}

// The document with legends of what occurs in a panel: scales span all panels, so that a sign has one meaning.
function narrowLegends(spec, data) {
  if (!spec.layer) return spec;
  const rows = Object.values(data).flat();
  const narrow = (channel) => {
    if (!channel.legend || !Array.isArray(channel.scale?.domain)) return channel;
    const present = new Set(rows.map((row) => row[channel.field]));
    const values = channel.scale.domain.filter((name) => present.has(name));
    return values.length ? { ...channel, legend: { ...channel.legend, values } } : channel; // Vega cannot draw an empty one
  };
  const layer = spec.layer.map((own) => ({ ...own, encoding: Object.fromEntries(Object.entries(own.encoding).map(([name, channel]) => [name, narrow(channel)])) }));
  return { ...spec, layer };
}

// Whether a row passes a layer's filter, of those forms that the plots have; any other form passes.
function passesLayer(row, filter) {
  return String(filter).split(" && ").every((term) => {
    const [, not, validated, plain] = /^(!?)(?:isValid\(datum\.(\w+)\)|datum\.(\w+))$/.exec(term) ?? [];
    if (!validated && !plain) return true;
    return Boolean(validated ? row[validated] !== null && row[validated] !== undefined : row[plain]) !== (not === "!");
  });
}

// The document without the layers that have nothing to draw of these rows: Vega would look for the extent of nothing.
function dropEmptyLayers(spec, data) {
  if (!spec.layer) return spec;
  const layer = spec.layer.filter((own) => {
    const filters = (own.transform ?? []).map((step) => step.filter).filter(Boolean);
    const rows = data[own.data?.name ?? spec.data?.name] ?? [];
    return !filters.length || rows.some((row) => filters.every((filter) => passesLayer(row, filter)));
  });
  return { ...spec, layer };
}

// The chart of a panel with its words and the note on what it does not draw; null where nothing passes the filter.
function makePanel(figure, title) {
  const passing = selectRows(figure, title);
  if (passing === null) return null;
  const { data, note } = limitRows(passing, figure.limit);
  const rows = new Set(Object.values(data).flat().map((row) => row.row).filter((row) => row !== undefined && row !== null));
  const height = figure.row_pixels ? { height: figure.row_pixels * Math.max(1, rows.size) } : {};
  return { spec: { ...dropEmptyLayers(narrowLegends(figure.spec, data), data), ...height, datasets: data }, words: figure.description || describeRows(data, figure.says), note };
}
