// Shows the rows of the tables that pass the filter; of long tables the rows in view.

const MAX_PRINTED_ROWS = 500;

function startTables() {
  for (const script of document.querySelectorAll(".packed-rows")) new LongTable(script);
  const rows = [...document.querySelectorAll("[data-cells]")].map((row) => [row, row.dataset.cells.split(" ")]);
  const update = () => { for (const [row, ids] of rows) row.hidden = !passesCells(ids); };
  onChange(["filters", "q"], update);
  if (isFiltered()) update();
}

class LongTable {
  constructor(script) {
    this.text = script.textContent;
    this.scroller = script.closest(".scroll");
    this.table = this.scroller.querySelector("table");
    this.table.classList.add("long-table");
    this.classes = [...this.table.tHead.rows[0].cells].map((cell) => cell.className);
    drawInView(this.scroller, () => this.draw());
    addEventListener("beforeprint", () => this.rows?.drawAll(MAX_PRINTED_ROWS));
  }

  async draw() {
    if (!this.rows) {
      const { columns, cells } = await unpackText(this.text);
      this.columns = columns;
      this.cells = Array.from(columns[0].codes ?? columns[0].numbers, (_, row) => cells.map((ids) => readValue(ids, row)).filter(Boolean));
      this.rows = new VirtualRows(this.scroller, this.table, (index) => this.makeRow(this.passing[index], index));
    }
    this.passing = this.cells.map((_, row) => row).filter((row) => passesCells(this.cells[row]));
    this.rows.show(this.passing.length);
  }

  makeRow(row, index) {
    const cells = this.columns.map((column, place) => {
      const text = readValue(column, row) ?? "";
      return makeElement(place ? "td" : "th", { ...(place ? {} : { scope: "row" }), class: this.classes[place] || null, title: text.length > 30 ? text : null }, text);
    });
    return makeElement("tr", { "aria-rowindex": index + 2 }, cells);
  }
}
