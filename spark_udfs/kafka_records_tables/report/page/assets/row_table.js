// A table of any number of rows, of which only those in sight are drawn.

const ROW_HEIGHT = 34;
const MOST_HEIGHT = 8_000_000; // Browsers draw no element that is higher than some 17 million pixels.
const MOST_SHOWN = 14;
const PRINTED_ROWS = 300;

let tablesMade = 0;
const drawnTables = new Set();

/**
 * A table with a search field, headings that sort, and a row count that is read out.
 *
 * label: what it is, for people who do not see it. columns: see rows.js. rows: places of the rows, as an array.
 * find: a function from what is typed to a function from a row to whether it is found; null without a field.
 * sort: [name of a column, whether the largest come first]. open: what a click on the button of a row does.
 * changed: called with what is typed and the order, when people change them.
 */
const rowTable = ({ label, columns, rows, find = null, typed = "", sort = null, open = null, changed = null, filters = [] }) => {
  const id = `rows-${tablesMade++}`;
  const state = { rows, typed, sort };
  const body = make("tbody");
  const widths = widthsOf(columns, rows);
  const headings = columns.map((column) => heading(column, state, sortBy));
  const table = make(
    "table",
    { "aria-label": label, "aria-rowcount": rows.length + 1 },
    make("colgroup", {}, widths.map(widthIn), open ? widthIn(5) : null),
    make("thead", {}, make("tr", { "aria-rowindex": 1 }, headings.map((each) => each.element), open ? make("th", { scope: "col" }, make("span", { class: "unseen" }, "whole row")) : null)),
    body
  );
  // A fixed layout holds the widths only where the table has one itself.
  table.style.width = `max(100%, ${widths.reduce((sum, each) => sum + each, open ? 5 : 0)}ch)`;
  const view = make("div", { class: "rows", tabindex: "0", role: "region", "aria-label": `${label}, rows` }, table);
  const count = make("p", { class: "row-count", role: "status", id: `${id}-count` });
  const field = find && make("input", { type: "search", "aria-label": `Find in: ${label}`, placeholder: "Find in these rows", value: typed, autocomplete: "off", spellcheck: "false" });
  let height = 0;
  let first = -1;

  function sortBy(name) {
    const [current, down] = state.sort ?? [];
    state.sort = [name, current === name ? !down : false];
    arrange();
    changed?.(state);
  }

  const arrange = () => {
    const test = find && state.typed ? find(state.typed) : null;
    const chosen = test ? state.all.filter(test) : state.all.slice();
    if (state.sort) {
      const [name, down] = state.sort;
      const column = columns.find((each) => each.name === name);
      if (column) chosen.sort(down ? (a, b) => downwards(column, a, b) : column.compare);
    }
    state.rows = chosen;
    headings.forEach((each) => each.mark(state.sort));
    count.textContent =
      chosen.length === state.all.length ? plural(chosen.length, "row") : `${number(chosen.length)} of ${plural(state.all.length, "row")}`;
    table.setAttribute("aria-rowcount", chosen.length + 1);
    height = Math.min(chosen.length * ROW_HEIGHT, MOST_HEIGHT);
    view.style.height = `${(Math.min(Math.max(chosen.length, 1), MOST_SHOWN) + 1) * ROW_HEIGHT + 18}px`;
    view.scrollTop = 0;
    draw(true);
  };

  const draw = (again = false, from = null, most = null) => {
    const shownRows = most ?? MOST_SHOWN + 12;
    const span = Math.max(height - MOST_SHOWN * ROW_HEIGHT, 1);
    const isScaled = state.rows.length * ROW_HEIGHT > MOST_HEIGHT;
    const top = isScaled
      ? Math.floor(Math.min(view.scrollTop / span, 1) * Math.max(state.rows.length - MOST_SHOWN, 0))
      : Math.floor(view.scrollTop / ROW_HEIGHT);
    const start = from ?? Math.max(Math.min(top - 4, state.rows.length - shownRows), 0);
    if (!again && start === first) return;
    first = start;
    const focused = document.activeElement?.closest?.("tr")?.dataset.row;
    const drawn = Array.from(state.rows.slice(start, start + shownRows), (row, at) => lineOf(row, start + at));
    const above = most ? 0 : isScaled ? Math.max(Math.min(view.scrollTop - 4 * ROW_HEIGHT, height - drawn.length * ROW_HEIGHT), 0) : start * ROW_HEIGHT;
    const below = most ? 0 : Math.max(height - above - drawn.length * ROW_HEIGHT, 0);
    const hadFocus = body.contains(document.activeElement);
    body.replaceChildren(spacer(above), ...drawn, spacer(below));
    if (!state.rows.length) body.append(make("tr", {}, make("td", { colspan: columns.length + (open ? 1 : 0), class: "dim" }, "no rows")));
    if (hadFocus && focused) (body.querySelector(`tr[data-row="${focused}"] :is(a, button)`) ?? view).focus({ preventScroll: true });
  };

  const lineOf = (row, place) =>
    make(
      "tr",
      { "aria-rowindex": place + 2, dataset: { row } },
      columns.map((column, at) => make(at ? "td" : "th", { class: RIGHT.includes(column.kind) ? "right" : null, scope: at ? null : "row" }, column.show(row, widths[at] - 3))),
      open ? make("td", {}, make("button", { type: "button", class: "row-open", "aria-label": `whole row ${place + 1}`, on: { click: () => open(row) } }, "⋯")) : null
    );

  view.addEventListener("scroll", () => draw(), { passive: true });
  view.addEventListener("keydown", (event) => {
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.target !== view || !(event.key in moves)) return;
    view.scrollTop += moves[event.key] * ROW_HEIGHT;
    event.preventDefault();
  });
  field?.addEventListener("input", () => {
    state.typed = field.value;
    arrange();
    changed?.(state);
  });
  state.all = rows;
  const element = make("div", { class: "row-table" }, make("div", { class: "row-tools" }, field, filters, count), view);
  element.print = (isPrinted) => {
    if (isPrinted) draw(true, 0, PRINTED_ROWS);
    else draw(true);
    element.querySelector(".printed-note")?.remove();
    if (isPrinted && state.rows.length > PRINTED_ROWS)
      element.append(make("p", { class: "printed-note" }, `The first ${PRINTED_ROWS} of ${plural(state.rows.length, "row")}.`));
  };
  /** Other rows, as a filter gives them. */
  element.show = (others) => {
    state.all = others;
    arrange();
  };
  drawnTables.add(new WeakRef(element));
  arrange();
  return element;
};

/** The largest first, and what has no value still last. */
const downwards = (column, one, other) => {
  const [isOne, isOther] = [column.has(one), column.has(other)];
  return isOne === isOther ? column.compare(other, one) : isOne ? -1 : 1;
};

const heading = (column, state, sortBy) => {
  const arrow = make("span", { class: "arrow", "aria-hidden": "true" });
  const button = make("button", { type: "button", title: column.about || null, on: { click: () => sortBy(column.name) } }, column.label, arrow);
  const element = make("th", { scope: "col", class: RIGHT.includes(column.kind) ? "right" : null }, button);
  const mark = (sort) => {
    const isBy = sort?.[0] === column.name;
    element.setAttribute("aria-sort", isBy ? (sort[1] ? "descending" : "ascending") : "none");
    arrow.textContent = isBy ? (sort[1] ? "↓" : "↑") : "";
  };
  return { element, mark };
};

const spacer = (height) => {
  const cell = make("td", { class: "spacer" });
  const line = make("tr", { class: "spacer", "aria-hidden": "true" }, cell);
  line.style.height = `${height}px`;
  return line;
};

const widthIn = (characters) => {
  const column = make("col");
  column.style.width = `${characters}ch`;
  return column;
};

const LEAST_TEXT = 22;
const LEAST_NAME = 28; // of the first column, which says what a row is about

/** Widths in characters: as wide as the rows need, and texts narrower where the window has no room for all. */
const widthsOf = (columns, rows) => {
  const widths = columns.map((column) => widthOf(column, rows));
  const isText = columns.map((column) => !RIGHT.includes(column.kind) && column.kind !== "time");
  let over = widths.reduce((sum, each) => sum + each, 5) - (Math.min(innerWidth, 1248) - 50) / CHARACTER;
  while (over > 0) {
    const widest = widths.reduce((found, each, at) => (isText[at] && each > (at ? LEAST_TEXT : LEAST_NAME) && each > (widths[found] ?? 0) ? at : found), -1);
    if (widest < 0) break;
    widths[widest]--;
    over--;
  }
  return widths;
};

const CHARACTER = 9.6; // pixels of a digit in the fonts of the page, the widest of them

const widthOf = (column, rows) => {
  let longest = column.label.length * 0.85 + 2;
  for (let i = 0; i < Math.min(rows.length, 60); i++) longest = Math.max(longest, column.length(rows[i]));
  return Math.min(Math.ceil(longest * 0.95) + 3, 44);
};

const allRows = (count) => Uint32Array.from({ length: count }, (_, row) => row);

addEventListener("beforeprint", () => eachDrawn((table) => table.print(true)));
addEventListener("afterprint", () => eachDrawn((table) => table.print(false)));

const eachDrawn = (act) => {
  for (const reference of drawnTables) {
    const table = reference.deref();
    if (!table?.isConnected) drawnTables.delete(reference);
    else act(table);
  }
};
