// Draws the plots that are in view, of the rows that pass the filter; of many panels a few at once.

const PANELS_AT_ONCE = 12;

// A place in the page for panels that are drawn on demand. `listTitles` returns those that pass the filter, and `draw`
// draws one into its place; `first`: how many are drawn before the reader asks for more.
class PanelBox {
  constructor(container, { listTitles, draw, first = PANELS_AT_ONCE }) {
    Object.assign(this, { container, listTitles, draw, shown: first, places: new Map() });
    this.empty = makeElement("p", { class: "hint", hidden: true }, "Nothing of this passes the filter.");
    container.after(this.empty);
    drawInView(container, () => this.update());
  }

  async update() {
    const titles = await this.listTitles();
    const wanted = titles.slice(0, this.shown);
    for (const [title, place] of this.places) if (!wanted.includes(title)) place.figure.remove();
    const drawn = wanted.map(async (title) => {
      if (!this.places.has(title)) this.places.set(title, makePlace(title));
      const place = this.places.get(title);
      this.container.append(place.figure);
      await new Promise(requestAnimationFrame); // the place has its width then
      await this.draw(title, place);
    });
    this.empty.hidden = titles.length > 0;
    this.offerMore(titles.length - wanted.length);
    await Promise.all(drawn);
  }

  offerMore(count) {
    this.more?.remove();
    if (count <= 0) return;
    const show = () => { this.shown += PANELS_AT_ONCE; this.update(); };
    const words = count <= PANELS_AT_ONCE ? `Show the other ${count === 1 ? "one" : count}`
      : `Show ${PANELS_AT_ONCE} more; ${count.toLocaleString("en-US")} are not shown`;
    const printed = `${countThings(count, "more plot")} of this kind: in the page, not in print.`;
    this.more = makeElement("p", { class: "more", "data-printed": printed }, makeElement("button", { type: "button", onclick: show }, words));
    this.container.after(this.more);
  }
}

function makePlace(title) {
  const box = makeElement("div", { class: "plot", role: "img", "aria-label": title });
  const note = makeElement("p", { class: "hint", hidden: true });
  return { box, note, figure: makeElement("figure", {}, title && makeElement("figcaption", {}, title), box, note) };
}

function fillPlace(place, panel) {
  place.box.setAttribute("aria-label", panel.words);
  place.note.textContent = panel.note;
  place.note.hidden = !panel.note;
  return drawChart(place.box, panel.spec);
}

// The panels of the one packed figure of a container.
function startPanels(container, text) {
  let figure = null;
  const load = async () => { figure ??= readFigure((await unpackText(text))[0]); };
  new PanelBox(container, {
    listTitles: async () => { await load(); return figure.panels.filter((title) => selectRows(figure, title) !== null); },
    draw: (title, place) => {
      const panel = makePanel(figure, title);
      return panel && fillPlace(place, panel);
    },
  });
}

// Figures without panels, whose places the page has from the start.
function startSingleFigures(container, text) {
  const boxes = [...container.querySelectorAll(".plot")];
  drawInView(container, async () => {
    const figures = (await unpackText(text)).map(readFigure);
    await Promise.all(figures.map((figure, index) => {
      const panel = makePanel(figure, "");
      boxes[index].closest("figure").hidden = panel === null;
      return panel && drawChart(boxes[index], panel.spec);
    }));
  });
}

function startPlots() {
  for (const container of document.querySelectorAll("[data-figures]")) {
    const text = container.querySelector(".packed-figures").textContent;
    if (container.dataset.figures === "panels") startPanels(container, text);
    else startSingleFigures(container, text);
  }
}
