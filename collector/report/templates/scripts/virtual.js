// Draws the rows of a long table that are in view; all rows are equally high.

const SPARE_ROWS = 8;

class VirtualRows {
  constructor(scroller, table, makeRow) {
    Object.assign(this, { scroller, table, makeRow, count: 0, first: 0, last: 0, rowPixels: 0 });
    this.body = table.tBodies[0];
    [this.above, this.below] = [this.makeSpace(), this.makeSpace()];
    this.body.before(this.above);
    this.body.after(this.below);
    let isAsked = false;
    scroller.addEventListener("scroll", () => {
      if (isAsked) return;
      isAsked = true;
      requestAnimationFrame(() => { isAsked = false; this.drawIfMoved(); });
    }, { passive: true });
    addEventListener("resize", () => { this.rowPixels = 0; this.draw(); });
  }

  makeSpace() {
    return makeElement("tbody", { "aria-hidden": "true" }, makeElement("tr", {}, makeElement("td", { class: "space" })));
  }

  show(count) {
    this.count = count;
    this.table.setAttribute("aria-rowcount", count + 1);
    this.draw();
  }

  measure() {
    if (this.rowPixels || !this.count) return;
    this.body.replaceChildren(this.makeRow(0));
    this.rowPixels = this.body.rows[0].getBoundingClientRect().height || 32;
  }

  findRange() {
    const visible = Math.ceil(innerHeight / this.rowPixels); // no scroller is higher than the window
    const top = Math.floor(this.scroller.scrollTop / this.rowPixels);
    const first = Math.max(0, Math.min(top, this.count - visible) - SPARE_ROWS);
    return [first, Math.min(this.count, first + visible + 2 * SPARE_ROWS)];
  }

  draw() {
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    this.measure();
    [this.first, this.last] = this.count ? this.findRange() : [0, 0];
    this.fill();
    if (focused) this.body.querySelector(`[data-key="${focused}"]`)?.focus({ preventScroll: true });
  }

  fill() {
    const rows = [];
    for (let index = this.first; index < this.last; index += 1) rows.push(this.makeRow(index));
    this.body.replaceChildren(...rows);
    this.setSpace(this.above, this.first);
    this.setSpace(this.below, this.count - this.last);
  }

  setSpace(space, count) {
    space.hidden = count === 0;
    space.rows[0].cells[0].style.height = `${count * this.rowPixels}px`;
  }

  drawIfMoved() {
    const [first, last] = this.findRange();
    const isNear = first >= this.first && last <= this.last && (this.first === 0 || first > this.first);
    if (!isNear || first !== this.first) this.draw();
  }

  // Scrolls so that the row is in view, and draws it.
  reveal(index) {
    const [top, height] = [index * this.rowPixels, this.scroller.clientHeight - 3 * this.rowPixels];
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top > this.scroller.scrollTop + height) this.scroller.scrollTop = top - height;
    this.draw();
  }

  drawAll(limit) {
    [this.first, this.last] = [0, Math.min(limit, this.count)];
    this.fill();
    this.below.hidden = true;
    const left = this.count - this.last;
    this.scroller.dataset.printed = left ? `${countThings(left, "more row")}: in the page, not in print.` : "";
  }
}
