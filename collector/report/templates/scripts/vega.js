// Draws charts with Vega, which starts when the first of them comes into view: a page opens faster without it.

const VIEWS = new WeakMap();
let vegaLoading = null;

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

async function drawChart(box, spec) {
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

// Draws a packed figure with other rows: `replace` gets the rows of each data set and returns those to draw.
function drawWithRows(box, figure, replace) {
  const datasets = Object.fromEntries(Object.entries(figure.data).map(([name, packed]) => [name, replace(listRows(packed))]));
  const rows = Object.values(datasets).reduce((most, own) => Math.max(most, own.length), 1);
  return drawChart(box, { ...figure.spec, ...(figure.row_pixels ? { height: figure.row_pixels * rows } : {}), datasets });
}

// Calls `draw` when the element comes near the view or is printed, and again after each change of the filter.
function drawInView(element, draw) {
  let isNear = false, isStale = true;
  let drawing = Promise.resolve();
  const drawNow = () => {
    // What a browser folds away without its width cannot be drawn yet: it comes into view when that is opened.
    if (isStale && element.getBoundingClientRect().width > 0) {
      isStale = false;
      drawing = Promise.resolve(draw());
    }
    return drawing;
  };
  const update = () => { if (isNear) drawNow(); };
  new IntersectionObserver((entries) => { isNear = entries.at(-1).isIntersecting; update(); }, { rootMargin: "400px" }).observe(element);
  onChange(["filters", "q"], () => { isStale = true; update(); });
  drawBeforePrint(drawNow);
}
