// Shows the rows of the tables that pass the filter; of long tables the rows in view.

const NO_ROW = "No row here is of a cell that passes the filter.";

function startTables() {
  for (const script of document.querySelectorAll(".packed-rows")) new LongTable(script);
  for (const table of document.querySelectorAll("main table:not(#heat, .long-table, .grid)")) {
    startStaticSorting(table);
    hideRepeatedNames(table);
  }
  const rows = [...document.querySelectorAll("[data-cells]")].map((row) => [row, row.dataset.cells.split(" ")]);
  const tables = [...document.querySelectorAll("main table:not(#heat, .long-table)")].filter((table) => table.querySelector("[data-cells]"));
  const update = () => {
    for (const [row, ids] of rows) row.hidden = !passesCells(ids);
    for (const table of tables) {
      noteEmpty(table, [...table.tBodies[0].rows].every((row) => row.hidden));
      hideRepeatedNames(table);
    }
  };
  onChange(["filters", "q"], update);
  if (isFiltered()) update();
}

// Shows the name of rows that follow each other under one name in the first of them; assistive technology reads it in each.
function hideRepeatedNames(table) {
  let above = "";
  for (const row of table.tBodies[0].rows) {
    const name = row.querySelector("th > span");
    if (row.hidden || !name) continue;
    name.classList.toggle("unseen", name.textContent === above);
    above = name.textContent;
  }
}

// Says below a table that its rows are gone by the filter and not for want of results.
function noteEmpty(table, isEmpty) {
  const note = table.nextElementSibling?.classList.contains("emptied") ? table.nextElementSibling : null;
  if (isEmpty && !note) table.after(makeElement("p", { class: "hint emptied" }, NO_ROW));
  else if (!isEmpty) note?.remove();
}

class LongTable {
  constructor(script) {
    this.text = script.textContent;
    this.scroller = script.closest(".scroll");
    this.table = this.scroller.querySelector("table");
    this.table.classList.add("long-table");
    this.classes = [...this.table.tHead.rows[0].cells].map((cell) => cell.className);
    drawInView(this.scroller, () => this.draw());
  }

  async draw() {
    if (!this.rows) {
      const { columns, cells } = await unpackText(this.text);
      this.columns = columns;
      this.cells = Array.from(columns[0].codes ?? columns[0].numbers, (_, row) => cells.map((ids) => readValue(ids, row)).filter(Boolean));
      this.rows = new VirtualRows(this.scroller, this.table, (index) => this.makeRow(this.passing[index], index));
      printRows(this.rows);
      startSorting(this.table, (column, order) => { this.sortBy(column, order); this.draw(); });
      this.sortBy(0, "none");
    }
    this.passing = this.sorted.filter((row) => passesCells(this.cells[row]));
    this.rows.show(this.passing.length);
    noteEmpty(this.table, !this.passing.length);
  }

  sortBy(column, order) {
    this.sorted = sortPlaces(this.cells.map((_, row) => readValue(this.columns[column], row) ?? ""), order);
  }

  makeRow(row, index) {
    const cells = this.columns.map((column, place) => {
      const text = readValue(column, row) ?? "";
      return makeElement(place ? "td" : "th", { ...(place ? {} : { scope: "row" }), class: this.classes[place] || null, title: text.length > 30 ? text : null }, text);
    });
    return makeElement("tr", { "aria-rowindex": index + 2 }, cells);
  }
}
