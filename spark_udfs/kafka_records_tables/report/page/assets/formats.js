// Numbers, sizes, moments and spans of time as people read them; moments are in UTC.

const grouped = new Intl.NumberFormat("en");
const number = (value) => (typeof value === "string" ? value.replace(/\B(?=(\d{3})+$)/g, ",") : grouped.format(value));

const amount = (value, unit) => {
  if (value === null || value === undefined) return "unknown";
  if (unit === "bytes") return size(value);
  if (unit === "ms") return span(value);
  return number(value);
};

const size = (bytes) => {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = bytes;
  let place = 0;
  while (value >= 1000 && place < units.length - 1) {
    value /= 1000;
    place++;
  }
  return `${place && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[place]}`;
};

const LAST_MOMENT = 253402300799999;

const moment = (ms) => {
  if (!(ms > -62135596800000 && ms <= LAST_MOMENT)) return number(ms);
  const text = new Date(ms).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, ms % 1000 ? 23 : 19)}`;
};

const SPANS = [["y", 31557600000], ["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];

const span = (ms) => {
  const length = Math.abs(ms);
  if (length < 1000) return `${length} ms`;
  const place = SPANS.findIndex(([, unit]) => length >= unit);
  const [word, unit] = SPANS[place];
  const whole = Math.floor(length / unit);
  const next = SPANS[place + 1];
  const rest = next ? Math.floor((length - whole * unit) / next[1]) : 0;
  return whole < 10 && rest ? `${whole} ${word} ${rest} ${next[0]}` : `${number(whole)} ${word}`;
};

/** How far a moment is from the moment of the report. */
const distance = (ms) => {
  const far = ms - report.document.request.at_timestamp_ms;
  if (Math.abs(far) < 1000) return "at the moment of the report";
  return far > 0 ? `in ${span(far)}` : `${span(far)} before the report's moment`;
};

/** How far a deadline is; one that had passed when the report was made is told from then. */
const deadlineDistance = (ms) => {
  const made = report.document.request.made_timestamp_ms;
  return isOfThePast() && ms <= made ? `passed ${span(made - ms)} before this report was made` : distance(ms);
};

/** Whether the last record is old, so that spans are counted from a moment that nobody chose. */
const isOfThePast = () => {
  const { at_timestamp_ms: at, made_timestamp_ms: made, as_of: isAsked } = report.document.request;
  return !isAsked && made - at > 3_600_000;
};

const when = (ms) => make("time", { datetime: Math.abs(ms) <= LAST_MOMENT ? new Date(ms).toISOString() : null }, moment(ms));
const words = (name) => name.replaceAll("_", " ");
const plural = (count, word) => `${number(count)} ${word}${Number(count) === 1 ? "" : "s"}`;
