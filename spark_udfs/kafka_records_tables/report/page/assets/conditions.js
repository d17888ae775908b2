// Conditions as `kafka-records table --where` takes them, held against the columns of a table.

const CONDITION = /^\s*(\w+)\s*(?:\s(is\s+(?:not\s+)?null)\s*|(==|<>|!=|<=|>=|=|<|>|~)\s*([^]*?)\s*)$/i;

/** A function from a row to whether the condition holds; null for what cannot be held against the columns. */
const conditionOf = (table, text) => {
  const [, name, isNull, operator, written] = CONDITION.exec(text) ?? [];
  const column = columnCalled(table, name);
  if (!column) return null;
  if (isNull) return /not/i.test(isNull) ? (row) => column.has(row) : (row) => !column.has(row);
  const holds = compared(operator, column, unquoted(written));
  return holds && ((row) => column.has(row) && holds(row));
};

const unquoted = (written) => (written.length > 1 && /^(["'])[^]*\1$/.test(written) ? written.slice(1, -1) : written);

/** The column, or the one in milliseconds that stands for the instant. */
const columnCalled = (table, name) => table.column(name) ?? table.column(`${name}_ms`);

const compared = (operator, column, written) => {
  if (column.kind === "text" || column.kind === "json") return comparedText(operator, column, written);
  if (column.kind === "flag") {
    const value = written.toLowerCase() === "true" ? 1 : 0;
    return operator === "!=" || operator === "<>" ? (row) => column.numbers[row] !== value : (row) => column.numbers[row] === value;
  }
  if (column.kind === "long") {
    const value = /^-?\d+$/.test(written) ? BigInt(written) : null;
    return value === null ? null : (row) => ordered(operator, BigInt(column.at(row)), value);
  }
  const value = /^-?\d+$/.test(written) ? Number(written) : momentOf(written);
  return Number.isNaN(value) ? null : (row) => ordered(operator, column.numbers[row], value);
};

const comparedText = (operator, column, written) => {
  const matching = new Uint8Array(column.texts.length);
  column.texts.forEach((text, place) => {
    matching[place] = operator === "~" ? text.includes(written) : ordered(operator, text, written);
  });
  return (row) => matching[column.numbers[row]] === 1;
};

/** A moment in UTC unless the text says otherwise. */
const momentOf = (written) => Date.parse(/[zZ]$|[+-]\d\d:?\d\d$/.test(written) || !/T|\s/.test(written) ? written : `${written.replace(" ", "T")}Z`);

const ordered = (operator, one, other) => {
  switch (operator) {
    case "<": return one < other;
    case "<=": return one <= other;
    case ">": return one > other;
    case ">=": return one >= other;
    case "!=": case "<>": return one !== other;
    default: return one === other;
  }
};

/** A function that says of a row whether one of its texts holds what was typed, or one of its numbers is it. */
const searchOf = (columns, typed) => {
  const sought = typed.toLowerCase();
  const asNumber = /^-?\d+$/.test(typed) ? Number(typed) : null;
  const tests = columns.flatMap((column) => {
    if (column.texts) {
      const matching = new Uint8Array(column.texts.length);
      column.texts.forEach((text, place) => (matching[place] = text.toLowerCase().includes(sought) ? 1 : 0));
      return [(row) => matching[column.numbers[row]] === 1 && column.has(row)];
    }
    if (asNumber === null || column.kind === "flag") return [];
    return [(row) => column.numbers[row] === asNumber && column.has(row)];
  });
  return (row) => tests.some((test) => test(row));
};
