// What the reader chose: filters, baseline, columns, the two sides, the cell. It lives in the address, behind the
// section: `#overview?f.model=resnet18,vgg16&q=train&a=ID`. Whoever shows it listens for changes.

const STATE = { anchor: "", filters: new Map(), q: "", baseline: "", columns: null, a: "", b: "", cell: "" };
const STATE_TEXTS = ["q", "baseline", "a", "b", "cell"];
const STATE_LISTENERS = [];

function decodeText(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody's own percent sign
  }
}

function parseHash(hash) {
  const [anchor, query = ""] = hash.replace(/^#/, "").split("?");
  const found = { anchor: decodeText(anchor), filters: new Map(), q: "", baseline: "", columns: null, a: "", b: "", cell: "" };
  for (const part of query.split("&").filter(Boolean)) {
    const [key, text = ""] = part.split("=");
    const values = text.split(",").filter(Boolean).map(decodeText);
    if (key.startsWith("f.") && values.length) found.filters.set(decodeText(key.slice(2)), new Set(values));
    else if (key === "columns") found.columns = values;
    else if (STATE_TEXTS.includes(key)) found[key] = decodeText(text);
  }
  return found;
}

function formatHash(state) {
  const join = (values) => [...values].map(encodeURIComponent).join(",");
  const parts = [...state.filters].map(([name, values]) => `f.${encodeURIComponent(name)}=${join(values)}`);
  if (state.columns !== null) parts.push(`columns=${join(state.columns)}`);
  for (const key of STATE_TEXTS) if (state[key]) parts.push(`${key}=${encodeURIComponent(state[key])}`);
  const query = parts.length ? `?${parts.join("&")}` : "";
  return `#${encodeURIComponent(state.anchor)}${query}`;
}

// `changed`: the names of what changed, for those that need not draw anew for anything else.
function changeState(changes) {
  Object.assign(STATE, changes);
  history.replaceState(null, "", formatHash(STATE));
  notifyListeners(new Set(Object.keys(changes)));
}

function notifyListeners(changed) {
  for (const listen of STATE_LISTENERS) listen(changed);
}

function onChange(names, listen) {
  STATE_LISTENERS.push((changed) => {
    if (names.some((name) => changed.has(name))) listen();
  });
}

function goToAnchor() {
  const target = STATE.anchor && findElement(STATE.anchor);
  if (!target) return;
  holdInView(target);
  markTarget(target);
  const head = target.querySelector("summary, h2, h3") ?? target;
  if (head.tabIndex < 0) head.tabIndex = -1; // so that a heading or a table can have the focus
  head.focus({ preventScroll: true });
}

// Marks what a link led to, until the next one is followed: a claim among twenty is found at a glance.
function markTarget(target) {
  document.querySelector(".reached")?.classList.remove("reached");
  target.classList.add("reached");
}

let releaseHeld = () => {};

// Opens what an element is folded in, and a section that is itself folded.
function unfold(element) {
  const own = element.querySelector(":scope > details.fold:not([open])");
  if (own) own.open = true;
  for (let folded = element.closest("details:not([open])"); folded; folded = folded.parentElement.closest("details:not([open])")) folded.open = true;
}

// Unfolds what an element is in, brings it to the top, and keeps it there while plots above it are drawn, until the
// reader does something.
function holdInView(element) {
  releaseHeld();
  unfold(element);
  const show = () => element.scrollIntoView({ behavior: "instant" });
  const observer = new ResizeObserver(show);
  releaseHeld = () => observer.disconnect();
  for (const name of ["wheel", "touchstart", "pointerdown", "keydown"]) {
    addEventListener(name, releaseHeld, { once: true, passive: true, capture: true });
  }
  show();
  observer.observe(document.body);
}

function readAddress() {
  Object.assign(STATE, parseHash(location.hash));
  notifyListeners(new Set(Object.keys(STATE)));
  goToAnchor();
}

// What a link of the page changes: where to go, and of what the reader chose only what it names.
function readLink(hash) {
  const { anchor, filters, columns, ...texts } = parseHash(hash);
  const named = Object.fromEntries(Object.entries(texts).filter(([, text]) => text));
  return { anchor, ...named, ...(filters.size ? { filters, q: "" } : {}), ...(columns ? { columns } : {}) };
}

function followLinks() {
  addEventListener("hashchange", readAddress);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    changeState(readLink(link.getAttribute("href")));
    goToAnchor();
  });
}
