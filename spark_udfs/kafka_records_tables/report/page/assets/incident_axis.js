// An incident on a time axis: lanes of moments, and offsets against the ends of logs. Drawn as SVG without a library.

const SVG = "http://www.w3.org/2000/svg";
const AXIS_WIDTH = 1000;
const LANE_HEIGHT = 20;
const OFFSETS_HEIGHT = 60;

const drawn = (tag, properties, ...children) => {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children.flat().filter(Boolean));
  return element;
};

/** A drawing as wide as there is room. The words beside it say what it shows. */
const drawing = (height, ...children) =>
  drawn("svg", { viewBox: `0 0 ${AXIS_WIDTH} ${height}`, preserveAspectRatio: "none", class: "axis-drawing", height, "aria-hidden": "true", focusable: "false" }, ...children);

const incidentAxis = ({ axis }) => {
  if (!axis) return null;
  const { start_ms: start, end_ms: end, since_ms: since, is_cut: isCut } = axis;
  const x = (ms) => (((Math.min(Math.max(ms, start), end) - start) / (end - start)) * (AXIS_WIDTH - 4) + 2).toFixed(1);
  const upright = (ms, height, kind) => drawn("line", { x1: x(ms), x2: x(ms), y1: 0, y2: height, class: kind });
  const isMarked = since !== null && since >= start && since <= end;
  const begin = (height) => (isMarked ? [drawn("rect", { x: x(since), y: 0, width: Math.max(x(end) - x(since), 1), height, class: "axis-incident" }), upright(since, height, "axis-since")] : []);
  const lanes = axis.lanes.flatMap(({ name, count, times }) => [
    make("dt", {}, name, " ", make("b", {}, number(count))),
    make("dd", {}, drawing(LANE_HEIGHT, begin(LANE_HEIGHT), times.map((ms) => upright(ms, LANE_HEIGHT, "axis-mark")))),
  ]);
  const offsets = axis.offsets.flatMap((each) => offsetLane(each, axis, x, begin));
  const head = ["On a time axis, from ", when(start), isCut ? dimmed(" (the log begins earlier)") : dimmed(" (the log begins)"), " to ", when(end), " UTC", isMarked ? [". The line is at ", when(since), ", when it began."] : "."].flat();
  return make("figure", { class: "axis" }, make("figcaption", {}, head), make("dl", {}, lanes, offsets));
};

/** The offsets of a group in a partition, as steps; the end of the log as a dashed line, over time if that is known. */
const offsetLane = ({ group, topic, partition, points, end, ends }, axis, x, begin) => {
  const known = points.map(([ms, offset]) => [ms, Number(offset)]);
  const endings = ends.map(([ms, offset]) => [ms, Number(offset)]).filter(([ms]) => ms >= axis.start_ms);
  const all = [...known, ...endings].map(([, offset]) => offset).concat(end === null ? [] : [Number(end)]);
  const [least, most] = [Math.min(...all), Math.max(...all)];
  const y = (offset) => (OFFSETS_HEIGHT - 4 - ((offset - least) / (most - least || 1)) * (OFFSETS_HEIGHT - 8)).toFixed(1);
  const path = (steps) => steps.map(([ms, offset], i) => (i ? `H${x(ms)}V${y(offset)}` : `M${x(ms)} ${y(offset)}`)).join("");
  const flat = end === null ? [] : [[axis.start_ms, Number(end)], [axis.end_ms, Number(end)]];
  const endLine = endings.length > 1 ? [...endings, ...flat.slice(1)] : flat;
  const marks = known.map(([ms, offset]) => drawn("line", { x1: x(ms), x2: x(ms), y1: Number(y(offset)) - 4, y2: Number(y(offset)) + 4, class: "axis-mark" }));
  const told = [...new Set(points.map(([, offset]) => number(offset)))];
  const shownOnes = told.length > 4 ? [told[0], "…", ...told.slice(-2)] : told;
  return [
    make("dt", {}, "offset of ", shown(group, 40), " in ", shown(topic, 40), `-${partition}: `, make("b", {}, shownOnes.join(" → ")), end === null ? null : [", the log ends at ", make("b", {}, number(end))]),
    make("dd", {}, drawing(OFFSETS_HEIGHT, begin(OFFSETS_HEIGHT), endLine.length ? drawn("path", { d: path(endLine), class: "axis-end" }) : null, drawn("path", { d: `${path(known)}H${x(axis.end_ms)}`, class: "axis-offsets" }), marks)),
  ];
};
