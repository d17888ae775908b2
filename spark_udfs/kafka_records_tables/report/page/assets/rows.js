// Columns as a table on the page shows them: a heading, what stands in the cell of a row, and how rows are sorted by it.

const RIGHT = ["number", "long", "size", "span"];

const cellOf = (column, value, most = CELL_LENGTH) => {
  if (value === null || value === undefined) return make("span", { class: "dim" }, "–");
  if (column.name === "group_id") return groupLink(value);
  if (column.name === "topic") return topicLink(value);
  switch (column.kind) {
    case "time": return when(value);
    case "flag": return value ? "yes" : "no";
    case "number": return isIdentity(column.name) ? String(value) : column.name.endsWith("_bytes") ? size(value) : number(value);
    case "long": return isIdentity(column.name) ? value : number(value);
    default: return column.name === "member_id" ? endsOf(value, most) : shown(value);
  }
};

/** An id whose middle is left out where it is long: members of a group often begin alike, and differ at the end. */
const endsOf = (text, most) => {
  if (visible(text).length <= most) return shown(text);
  const half = Math.max(Math.floor((most - 1) / 2), 4);
  return make("bdi", {}, visible(text.slice(0, half)), dimmed("…"), visible(text.slice(-half)));
};

/** Numbers that name something are not grouped by thousands. */
const isIdentity = (name) => /(^|_)(id|type)$|producer_id/.test(name);

/** The column of a table as the page shows it; its heading is the name that the command knows. */
const shownColumn = (table, name, label) => {
  const column = table.column(name);
  return {
    name,
    label: label ?? name.replace(/_timestamp_ms$/, "_timestamp"),
    kind: column.kind,
    about: column.about,
    show: (row, most) => inWords(table, column, column.at(row)) ?? cellOf(column, column.at(row), most),
    length: (row) => textLength(column, row),
    has: (row) => column.has(row),
    compare: (one, other) => column.compare(one, other),
  };
};

/** In characters; colons and hyphens are narrower than digits. */
const momentLength = (ms) => (ms % 1000 ? 22 : 18);

const textLength = (column, row) => {
  const value = column.at(row);
  if (value === null) return 1;
  if (column.kind === "time") return momentLength(value);
  return Math.min(String(value).length + (RIGHT.includes(column.kind) ? String(value).length / 3 : 0), 40);
};

/** A column that the page works out: `values` has a number or text per row, null for none. */
const workedOut = (name, label, kind, values, show, about = "") => ({
  name,
  label,
  kind,
  about,
  show: (row) => (values[row] === null || values[row] === undefined ? make("span", { class: "dim" }, "–") : show ? show(values[row], row) : cellOf({ name, kind }, values[row])),
  length: (row) => (kind === "time" ? momentLength(values[row]) : Math.min(String(values[row] ?? "–").length + 1, 40)),
  has: (row) => values[row] !== null && values[row] !== undefined,
  compare: (one, other) => {
    const [a, b] = [values[one] ?? null, values[other] ?? null];
    if (a === null || b === null) return (a === null) - (b === null);
    return a < b ? -1 : a > b ? 1 : 0;
  },
});

/** All values of a row, each whole, with what its column means. */
const openRow = (table, row) => {
  const dialog = document.getElementById("row-dialog");
  const close = make("button", { type: "button", class: "quiet", on: { click: () => dialog.close() } }, "close");
  dialog.replaceChildren(
    make("div", { class: "dialog-head" }, make("h2", { id: "row-dialog-title" }, `A row of ${table.name}`), close),
    make(
      "dl",
      { class: "values" },
      [...table.columns.values()].map((column) => [
        make("dt", {}, column.name, column.about ? make("small", {}, column.about) : null),
        make("dd", {}, wholeValue(column, column.at(row))),
      ])
    )
  );
  dialog.showModal();
};

const wholeValue = (column, value) => {
  if (value === null) return make("span", { class: "dim" }, "null");
  if (column.kind === "json") return indented(value);
  return column.texts && column.kind === "text" ? whole(value) : cellOf(column, value);
};

const indented = (text) => {
  if (text.length > 20_000) return whole(text);
  try {
    // Numbers that JSON.parse would round stay as they are written.
    if (/\d{16,}/.test(text)) return make("pre", { class: "whole", tabindex: "0" }, visible(text));
    const lines = JSON.stringify(JSON.parse(text), null, 2).split("\n").map(visible).join("\n");
    return make("pre", { class: "whole", tabindex: "0" }, lines);
  } catch {
    return whole(text);
  }
};
