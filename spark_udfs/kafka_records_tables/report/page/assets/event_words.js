// What columns of JSON hold, in words. The row as a whole, and the command, have it as it is.

/** A cell of the timeline or a list of names in words; null for what is no JSON, or is not known here. */
const inWords = (table, column, value) => {
  if (value === null || (column.kind !== "json" && !(table.name === "timeline" && column.name === "detail"))) return null;
  const held = parsed(value);
  if (Array.isArray(held)) return held.every((each) => typeof each === "string") ? shown(held.join(", ")) : null;
  return held && table.name === "timeline" ? shown(eventWords(held)) : null;
};

/** Numbers that JavaScript would round stay texts. */
const parsed = (text) => {
  try {
    return JSON.parse(text.replace(/([:[,]\s*)(-?\d{16,})(?=\s*[,\]}])/g, '$1"$2"'));
  } catch {
    return null;
  }
};

const EVENT_WORDS = [
  ["from", ({ from, to }) => `from ${from} to ${to}`],
  ["record", ({ record }) => `first record: ${record}`],
  ["gained", ({ gained }) => `gained ${partitionsOf(gained)}`],
  ["lost", ({ lost }) => `lost ${partitionsOf(lost)}`],
  ["instance_id", ({ instance_id: id }) => `instance ${id}`],
  ["client_id", ({ client_id: id }) => `client ${id}`],
  ["client_host", ({ client_host: host }) => `at ${host}`],
  ["former_member_id", ({ former_member_id: id }) => `was ${id}`],
  ["topic", ({ topic }) => `${topic}`],
  ["partitions", ({ partitions }) => plural(partitions, "partition")],
  ["lowest_offset", ({ lowest_offset: low, highest_offset: high }) => (low === high ? `offset ${number(low)}` : `offsets ${number(low)} to ${number(high)}`)],
];
const TOLD_WITH_ANOTHER = ["to", "highest_offset"];

const eventWords = (detail) => {
  const known = EVENT_WORDS.filter(([name]) => name in detail);
  const names = [...known.map(([name]) => name), ...TOLD_WITH_ANOTHER];
  const others = Object.entries(detail).filter(([name]) => !names.includes(name)).map(([name, value]) => `${words(name)} ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return [...known.map(([, tell]) => tell(detail)), ...others].join(", ");
};

const partitionsOf = (topics) => Object.entries(topics).map(([topic, partitions]) => `${topic} ${ranges(partitions)}`).join("; ");
