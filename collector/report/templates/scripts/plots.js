// Draws the plots that are in view, of the rows that pass the filter.

const PANELS_AT_ONCE = 12;
const CELL_ID_COLUMNS = ["cell_id", "cell_id_subject", "cell_id_reference"];
const VIEWS = new WeakMap();
let vegaLoading = null;

// Vega is started when the first plot comes into view: a page opens faster without it.
function loadVega() {
  vegaLoading ??= new Promise((resolve, reject) => {
    const script = makeElement("script");
    script.textContent = findElement("vega").textContent;
    document.body.append(script);
    if (window.vegaEmbed) resolve();
    else reject(new Error("the plotting library did not start"));
  });
  return vegaLoading;
}

async function embed(box, spec) {
  await loadVega();
  VIEWS.get(box)?.finalize();
  try {
    const { view } = await vegaEmbed(box, spec, { mode: "vega-lite", renderer: "svg", actions: false, ast: true });
    VIEWS.set(box, view);
    // The picture is described by the element that has it.
    box.querySelector("svg")?.setAttribute("aria-hidden", "true");
  } catch (error) {
    box.textContent = `This plot could not be drawn: ${error}`;
  }
  box.dataset.drawn = "true";
}

function drawWithRows(box, figure, replace) {
  const datasets = Object.fromEntries(Object.entries(figure.data).map(([name, packed]) => [name, replace(listRows(packed))]));
  const rows = Object.values(datasets).reduce((most, own) => Math.max(most, own.length), 1);
  return embed(box, { ...figure.spec, ...(figure.row_pixels ? { height: figure.row_pixels * rows } : {}), datasets });
}

function readFigure(packed) {
  const data = Object.fromEntries(Object.entries(packed.data).map(([name, frame]) => [name, listRows(frame)]));
  const isOfCells = Object.values(packed.data).some((frame) => CELL_ID_COLUMNS.some((name) => name in frame.columns));
  return { ...packed, data, isOfCells };
}

function passesRow(row) {
  return passesCells(CELL_ID_COLUMNS.map((name) => row[name]).filter(Boolean));
}

// The rows of a figure, or of one of its panels, that pass; null where none is left that is of a cell.
function selectRows(figure, panel) {
  const data = panel === null ? figure.data : figure.byPanel.get(panel);
  const datasets = Object.fromEntries(Object.entries(data).map(([name, rows]) => [name, rows.filter(passesRow)]));
  const isEmpty = figure.isOfCells && !Object.values(datasets).flat().some((row) => CELL_ID_COLUMNS.some((name) => row[name]));
  return isEmpty ? null : datasets;
}

function makeSpec(figure, datasets) {
  if (!figure.row_pixels) return { ...figure.spec, datasets };
  const rows = new Set(Object.values(datasets).flat().map((row) => row.row).filter((row) => row !== undefined));
  return { ...figure.spec, datasets, height: figure.row_pixels * Math.max(1, rows.size) };
}

// Calls `draw` when the element comes near the view, and again after each change of the filter.
function drawInView(element, draw) {
  let isNear = false, isStale = true;
  const update = () => {
    if (!isNear || !isStale) return;
    isStale = false;
    draw();
  };
  new IntersectionObserver((entries) => { isNear = entries.at(-1).isIntersecting; update(); }, { rootMargin: "400px" }).observe(element);
  onChange(["filters", "q"], () => { isStale = true; update(); });
  addEventListener("beforeprint", () => { isNear = true; update(); });
}

function makePlace(title, description) {
  const box = makeElement("div", { class: "plot", role: "img", "aria-label": description });
  return { box, place: makeElement("figure", {}, title && makeElement("figcaption", {}, title), box) };
}

class FigureBox {
  constructor(container) {
    this.container = container;
    this.text = container.querySelector(".packed-figures").textContent;
    this.note = makeElement("p", { class: "hint", hidden: true }, "Nothing of this passes the filter.");
    this.places = [...container.querySelectorAll("figure")];
    this.shown = PANELS_AT_ONCE;
    this.drawn = new Map();
    container.after(this.note);
    drawInView(container, () => this.draw());
  }

  async draw() {
    this.figures ??= (await unpackText(this.text)).map(readFigure);
    const places = [...this.places];
    let isEmpty = true;
    for (const figure of this.figures) {
      const isDrawn = figure.panels.length ? this.drawPanels(figure) : this.drawOne(figure, places.shift());
      if (isDrawn) isEmpty = false;
    }
    this.note.hidden = !isEmpty;
  }

  drawOne(figure, place) {
    const datasets = selectRows(figure, null);
    place.hidden = datasets === null;
    if (datasets) embed(place.querySelector(".plot"), makeSpec(figure, datasets));
    return datasets !== null;
  }

  drawPanels(figure) {
    figure.byPanel ??= groupByPanel(figure);
    const passing = figure.panels.filter(({ title }) => selectRows(figure, title) !== null);
    const wanted = passing.slice(0, this.shown);
    this.more?.remove();
    const places = wanted.map((panel) => this.drawPanel(figure, panel));
    for (const [title, place] of this.drawn) if (!wanted.some((panel) => panel.title === title)) place.remove();
    this.container.append(...places);
    if (passing.length > wanted.length) this.offerMore(passing.length - wanted.length);
    return passing.length > 0;
  }

  drawPanel(figure, { title, description }) {
    if (!this.drawn.has(title)) this.drawn.set(title, makePlace(title, description).place);
    const place = this.drawn.get(title);
    requestAnimationFrame(() => embed(place.querySelector(".plot"), makeSpec(figure, selectRows(figure, title))));
    return place;
  }

  offerMore(others) {
    const next = Math.min(others, PANELS_AT_ONCE);
    this.more = makeElement("p", { class: "more" }, makeElement("button", { type: "button", onclick: () => {
      this.shown += PANELS_AT_ONCE;
      this.draw();
    } }, `Show ${next} more of ${others.toLocaleString("en-US")}`));
    this.container.after(this.more);
  }
}

// The data sets of each panel; rows without a panel, such as reference lines, are in all of them.
function groupByPanel(figure) {
  const groups = new Map(figure.panels.map(({ title }) => [title, Object.fromEntries(Object.keys(figure.data).map((name) => [name, []]))]));
  for (const [name, rows] of Object.entries(figure.data)) {
    for (const row of rows) {
      if (row.panel !== undefined && row.panel !== null) groups.get(row.panel)?.[name].push(row);
      else for (const data of groups.values()) data[name].push(row);
    }
  }
  return groups;
}

function startPlots() {
  for (const container of document.querySelectorAll("[data-figures]")) new FigureBox(container);
}
