// Sorts tables by a click on a heading: upwards, downwards, and as they were.

const SORT_ORDERS = ["none", "ascending", "descending"];

// The first number of a text, such as 24.3 of `24.3 to 24.5`; null: it begins with none.
function readNumber(text) {
  const found = /^[-−]?[\d,]+(\.\d+)?(e[+-]?\d+)?/.exec(text.trim());
  return found ? Number(found[0].replace("−", "-").replaceAll(",", "")) : null;
}

// The places of the texts in order. Texts are compared by their numbers if all begin with one; empty ones come last.
function sortPlaces(texts, order) {
  const places = texts.map((_, place) => place);
  if (order === "none") return places;
  const isEmpty = (text) => text === "" || text === NOT_THERE;
  const numbers = texts.map(readNumber);
  const isNumeric = texts.every((text, place) => isEmpty(text) || numbers[place] !== null);
  const sign = order === "ascending" ? 1 : -1;
  const compare = (one, other) => {
    if (isEmpty(texts[one]) || isEmpty(texts[other])) return isEmpty(texts[one]) - isEmpty(texts[other]);
    return sign * (isNumeric ? numbers[one] - numbers[other] : texts[one].localeCompare(texts[other], "en", { numeric: true }));
  };
  return places.sort((one, other) => compare(one, other) || one - other);
}

// Makes a button of each heading, of text: a real button is not printed where a heading is repeated on the next page; `sort` gets the number of a column and one of SORT_ORDERS.
function startSorting(table, sort) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = makeElement("span", { role: "button", tabindex: "0", class: "sort" }, head.textContent);
    const sortNext = () => {
      const order = SORT_ORDERS[(SORT_ORDERS.indexOf(head.ariaSort ?? "none") + 1) % SORT_ORDERS.length];
      for (const other of heads) other.ariaSort = null;
      if (order !== "none") head.ariaSort = order;
      sort(column, order);
    };
    button.addEventListener("click", sortNext);
    button.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sortNext();
    });
    head.replaceChildren(button);
  });
}

// Sorts a table that stands in the page with all its rows.
function startStaticSorting(table) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 2) return;
  startSorting(table, (column, order) => {
    const texts = rows.map((row) => row.cells[column].textContent);
    table.tBodies[0].append(...sortPlaces(texts, order).map((place) => rows[place]));
    hideRepeatedNames(table);
  });
}
