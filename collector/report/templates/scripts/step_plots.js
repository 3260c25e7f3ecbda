// Draws the steps of cells in their order: in the details of one, and of all that pass the filter under "Is it steady?".

const MAX_DRAWN_REPEATS = 40;
const FIRST_STEP_PLOTS = 6; // those with the widest intervals, which are looked at first

// At most MAX_DRAWN_REPEATS of the repeats of a cell, evenly from the fastest to the slowest, in their order.
function chooseRepeats(series) {
  if (series.length <= MAX_DRAWN_REPEATS) return series;
  const byMedian = [...series].sort((one, other) => one.quantiles[3] - other.quantiles[3]);
  const step = (series.length - 1) / (MAX_DRAWN_REPEATS - 1);
  const chosen = new Set(Array.from({ length: MAX_DRAWN_REPEATS }, (_, index) => byMedian[Math.round(index * step)]));
  return series.filter((own) => chosen.has(own));
}

function describeSeries(series) {
  return series.map((own) => `repeat ${own.repeat}: ${own.num_warmup} steps of warm-up, ${own.num_timed} timed, median ${formatSignificant(own.quantiles[3])} ms`).join("; ");
}

function drawSeries(box, series, cellId, figure) {
  const points = listSeriesPoints(chooseRepeats(series), cellId);
  const start = points.reduce((least, point) => Math.min(least, point.step), 0) - 0.5;
  return drawWithRows(box, figure, (rows) => ("cut" in rows[0] ? [{ start, cut: -0.5 }] : points));
}

function noteOnRepeats(series) {
  const count = series.length;
  return count > MAX_DRAWN_REPEATS ? `Drawn are ${MAX_DRAWN_REPEATS} of ${count} repeats, evenly from the fastest to the slowest.` : "";
}

// One panel for each cell with figures that passes, the one with the widest interval first.
function startStepPlots(cells) {
  const container = document.querySelector("[data-steps]");
  if (!container) return;
  const rows = cells.ids.map((_, row) => row).filter((row) => cells.get("num_ok", row));
  const width = (row) => cells.get("log_standard_error", row) ?? -1;
  rows.sort((one, other) => width(other) - width(one));
  const rowsByLabel = new Map(rows.map((row) => [cells.get("label", row), row]).reverse());
  new PanelBox(container, {
    first: FIRST_STEP_PLOTS,
    listTitles: async () => [...new Set(rows.filter((row) => PASSING.rows[row]).map((row) => cells.get("label", row)))],
    draw: async (title, place) => {
      const figures = await loadDocument("detail-figures");
      const { series, plan } = await findCellDocument(cells, rowsByLabel.get(title));
      if (!series.length) {
        place.box.textContent = "There are no steps of this cell: its raw results were removed, or none was recorded.";
        return;
      }
      place.box.setAttribute("aria-label", describeSeries(chooseRepeats(series)));
      place.note.textContent = noteOnRepeats(series);
      place.note.hidden = !place.note.textContent;
      await drawSeries(place.box, series, plan.cell_id, figures.series);
    },
  });
}
