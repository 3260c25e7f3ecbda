"use strict";
// Makes elements. Texts become text nodes, so nothing that a result says is ever read as HTML: no other file sets HTML.

function makeElement(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

function findElement(id) {
  return document.getElementById(id);
}

function makeTerms(pairs) {
  const known = pairs.filter(([, text]) => text !== null && text !== undefined && text !== "");
  return makeElement("dl", { class: "facts" }, known.map(([name, text]) =>
    makeElement("div", {}, makeElement("dt", {}, name), makeElement("dd", {}, String(text)))));
}

function countThings(count, singular) {
  return `${count.toLocaleString("en-US")} ${singular}${count === 1 ? "" : "s"}`;
}
