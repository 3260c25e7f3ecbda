// Prints the page: first draws what is drawn on demand, then opens what is folded; afterwards all is as before.

const MAX_PRINTED_ROWS = 500;
const MAX_PRINTED_LOGS = 10;
const MAX_IDLE_CELLS = 500;
const PRINT_DRAWERS = [];

// `draw` draws what is not drawn yet, and returns a promise that is kept when it is.
function drawBeforePrint(draw) {
  PRINT_DRAWERS.push(draw);
  addEventListener("beforeprint", draw); // too late for plots, which are not drawn at once; rows of tables are
}

async function drawForPrint() {
  await Promise.all(PRINT_DRAWERS.map((draw) => draw()));
}

// Draws everything bit by bit while the browser has nothing else to do, so that its own menu prints it all. Not of a
// large run: the plots of 10,000 cells take seconds.
async function drawInIdleTime(cells) {
  if (cells.size > MAX_IDLE_CELLS) return;
  const rest = window.requestIdleCallback ?? ((then) => setTimeout(then, 200));
  for (const draw of PRINT_DRAWERS) {
    await new Promise((resolve) => rest(resolve));
    await draw();
  }
}

// Draws everything first, then prints: the button, and Ctrl+P.
function startPrinting() {
  const button = findElement("print");
  const words = button.textContent;
  const print = async () => {
    if (button.disabled) return;
    [button.disabled, button.textContent] = [true, "Drawing all plots …"];
    const fold = unfoldAll();
    try {
      await drawForPrint();
    } finally {
      [button.disabled, button.textContent] = [false, words];
    }
    window.print();
    fold();
  };
  button.hidden = false;
  button.addEventListener("click", print);
  addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "p" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    print();
  });
}

// Opens the sections and what else is printed open, and returns what folds them again.
function unfoldAll() {
  const logs = [...document.querySelectorAll("details.log:not([open])")].slice(0, MAX_PRINTED_LOGS);
  const opened = [...document.querySelectorAll("details:is(.facts-box, .fold):not([open])"), ...logs];
  for (const details of opened) details.open = true;
  return () => {
    for (const details of opened) details.open = false;
  };
}

// Before anything is drawn for print: what is folded has no size.
function unfoldForPrint() {
  let fold = () => {};
  addEventListener("beforeprint", () => { fold = unfoldAll(); });
  addEventListener("afterprint", () => fold());
}

// Prints the first rows of a table whose rows are drawn in view, with a note on the others.
function printRows(rows) {
  addEventListener("beforeprint", () => rows.drawAll(MAX_PRINTED_ROWS));
  addEventListener("afterprint", () => rows.draw());
}
