// Puts together what the page knows of one cell: its plan, its repeats, their steps.

async function findCellDocument(cells, row) {
  const id = cells.ids[row];
  const [details, steps] = await Promise.all([loadDocument("details"), loadDocument("steps")]);
  const index = await indexRows("details", details.columns.cell_id, id);
  const repeats = index.map((place) => readRow(details.columns, place));
  const series = (await indexRows("steps", steps.columns.cell_id, id)).map((place) => readRow(steps.columns, place));
  const plan = details.plans.cell_id ? details.plans.cell_id.texts.indexOf(id) : -1;
  return {
    plan: plan < 0 ? { cell_id: id } : readRow(details.plans, plan),
    figures: readRow(cells.columns, row),
    repeats,
    series,
    environments: [...new Set(repeats.map((repeat) => repeat.environment_id).filter(Boolean))].map((name) => [name, details.environments[name]]),
    isFull: details.is_full,
    logCharacters: details.num_log_characters,
    prefix: details.prefix,
    points: steps.points,
  };
}

const ROW_INDICES = new Map();

// The rows of a packed document that are of one cell; all cells are looked up at once, the first time.
async function indexRows(name, column, id) {
  if (!ROW_INDICES.has(name)) {
    const index = new Map();
    column.codes?.forEach((code, place) => { // all of them are ids of cells
      const own = index.get(column.texts[code]);
      if (own) own.push(place);
      else index.set(column.texts[code], [place]);
    });
    ROW_INDICES.set(name, index);
  }
  return ROW_INDICES.get(name).get(id) ?? [];
}

// The points of a cell's steps as the chart wants them: step 0 is the first timed one, the warm-up counts downwards.
function listSeriesPoints(series, cellId) {
  const points = [];
  for (const own of series) {
    const kinds = [[own.warmup, own.warmup_width, -own.num_warmup, own.num_warmup], [own.timed, own.timed_width, 0, own.num_timed]];
    for (const [values, width, start, count] of kinds) {
      values.forEach((value, index) => {
        const [median, low, high] = width === 1 ? [value, value, value] : value;
        const members = Math.min(width, count - index * width);
        points.push({ repeat: own.repeat, step: start + index * width + (members - 1) / 2, median, low, high, cell_id: cellId });
      });
    }
  }
  return points;
}

function listQuantiles(series) {
  const names = ["least", "p5", "q1", "median", "q3", "p95", "greatest"];
  return series.map((own) => ({ repeat: own.repeat, ...Object.fromEntries(names.map((name, index) => [name, own.quantiles[index]])) }));
}

function dropMissing(row) {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));
}

function writeCellJson(found) {
  const { cell_id: id, repeats: planned, not_recorded: absent = [], ...cell } = found.plan;
  for (const name of absent) delete cell[name];
  const document = {
    cell_id: id,
    cell,
    ...(absent.length ? { not_recorded_by_this_version: absent } : {}),
    planned_repeats: planned,
    summary: dropMissing(found.figures),
    repeats: found.repeats.map(({ cell_id: _, ...repeat }) => dropMissing(repeat)),
    steps_ms: found.series.map(({ cell_id: _, ...own }) => own),
  };
  return JSON.stringify(document, null, 1);
}
