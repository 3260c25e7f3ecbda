// Starts the page: reads the address, then everything that shows cells. Until then the tables can be read as they are.

let CELLS = null;

async function startPage() {
  const cells = await loadDocument("cells");
  for (const name of ["cell_id", "label"]) POOLS[name] = cells.columns[name].texts;
  CELLS = new Cells(cells);
  Object.assign(STATE, parseHash(location.hash));
  findElement("overview-tools").hidden = false;
  unfoldForPrint();
  startFilters(CELLS);
  startHeat(CELLS);
  startSides(CELLS);
  startDetails(CELLS);
  startTables();
  startPlots();
  startStepPlots(CELLS);
  startPrinting();
  followLinks();
  goToAnchor();
  drawInIdleTime(CELLS);
  performance.mark("interactive");
  document.documentElement.dataset.ready = "true";
}

startPage().catch((error) => {
  const notice = findElement("filter-notice");
  notice.hidden = false;
  notice.textContent = `The overview cannot be shown in this browser (${error}). The tables below are complete, except for long ones.`;
});
