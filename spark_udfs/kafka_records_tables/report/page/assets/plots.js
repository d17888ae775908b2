// Plots by Vega-Lite. Its code is unpacked when the first plot comes into sight, and works without eval
// (vega-interpreter). Data stands under field names of ours, never in an expression or as the name of a field.

const vegaReady = once(async () => {
  const script = make("script");
  script.textContent = await textOf("plots");
  document.head.append(script);
  return [globalThis.vega, globalThis.vegaLite];
});

const styleValue = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const plotStyle = () => {
  const ink = styleValue("--soft");
  const font = styleValue("--font");
  const axis = { labelColor: ink, titleColor: ink, domainColor: styleValue("--line"), tickColor: styleValue("--line"), gridColor: styleValue("--line"), labelFont: font, titleFont: font, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" };
  return {
    background: null,
    view: { stroke: null },
    axis,
    legend: { labelColor: ink, titleColor: ink, labelFont: font, titleFont: font, labelFontSize: 12, symbolType: "square", labelLimit: 260, title: null },
    range: { category: Array.from({ length: 9 }, (_, i) => styleValue(`--series-${i}`)) },
  };
};

const plotsDrawn = new Set();

/**
 * A figure whose plot is drawn when it comes into sight, and again in other colours. `specOf` makes the Vega-Lite;
 * `earlier` are values that stand so far before the others that they are said and not drawn.
 */
const plot = (title, description, earlier, specOf) => {
  const place = make("div", { class: "plot", role: "img", "aria-label": `${title}. ${description}` });
  const figure = make("figure", {}, make("figcaption", {}, title), place, earlierOnes(earlier));
  let view = null;
  const draw = async () => {
    const [vega, vegaLite] = await vegaReady("");
    const spec = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: "container", ...specOf(), config: plotStyle() };
    spec.width = Math.max(place.clientWidth - 20, 200);
    spec.autosize = { type: "fit-x", contains: "padding" };
    delete spec.$schema;
    const compiled = vegaLite.compile(spec).spec;
    view?.finalize();
    view = new vega.View(vega.parse(compiled, null, { ast: true }), { expr: vega.expressionInterpreter, renderer: "svg", container: place, hover: true });
    await view.runAsync();
    place.querySelector("svg")?.setAttribute("aria-hidden", "true");
    place.dataset.drawn = "yes";
  };
  const sight = new IntersectionObserver((entries) => {
    if (!entries.some((each) => each.isIntersecting)) return;
    sight.disconnect();
    draw();
  }, { rootMargin: "200px" });
  sight.observe(place);
  // A page that is printed or captured whole shows plots that nobody scrolled to.
  const atLeisure = globalThis.requestIdleCallback ?? setTimeout;
  atLeisure(() => {
    if (view || !place.isConnected) return;
    sight.disconnect();
    draw();
  });
  plotsDrawn.add(new WeakRef(figure));
  figure.redraw = () => (view ? draw() : null);
  return figure;
};

const redrawPlots = () => {
  for (const reference of plotsDrawn) {
    const figure = reference.deref();
    if (figure?.isConnected) figure.redraw();
    else plotsDrawn.delete(reference);
  }
};

const NAME_LENGTH = 36;
const plotName = (text) => {
  const name = visible(text);
  return name.length > NAME_LENGTH ? `${name.slice(0, NAME_LENGTH)}…` : name;
};

/** Stacked bars over time: `values` are {start, end, low, high, amount, series}, `names` the series as the legend has them. */
const barsOverTime = (values, names, amountTitle, format) => ({
  height: 190,
  data: { values },
  mark: { type: "rect", stroke: null },
  encoding: {
    x: { field: "start", type: "temporal", scale: { type: "utc" }, title: null, axis: { grid: false, tickCount: 8, labelOverlap: true, format: momentFormat(values) } },
    x2: { field: "end" },
    y: { field: "low", type: "quantitative", title: amountTitle, axis: { format, tickCount: 5, domain: false } },
    y2: { field: "high" },
    color: { field: "series", type: "nominal", scale: { domain: names }, legend: names.length > 1 ? { orient: "bottom", columns: Math.max(Math.min(3, Math.floor(innerWidth / 320)), 1) } : null },
    tooltip: [
      { field: "start", type: "temporal", format: "%Y-%m-%d %H:%M", timeUnit: "utcyearmonthdatehoursminutes", title: "from" },
      { field: "series", type: "nominal", title: "what" },
      { field: "amount", type: "quantitative", format: ",", title: "amount" },
    ],
  },
});

const MOST_EARLIER = 1 / 3;

/** Values without the few before a pause that is longer than all that follows, and these: an axis spans where rows are. */
const whereMostAre = (values) => {
  const sorted = values.slice().sort((one, other) => one.start - other.start);
  let first = 0;
  for (let i = 1; i < sorted.length && i <= sorted.length * MOST_EARLIER; i++)
    if (sorted[i].start - sorted[i - 1].start > Math.max(sorted[sorted.length - 1].start - sorted[i].start, HOUR)) first = i;
  return [sorted.slice(first), sorted.slice(0, first)];
};

const earlierOnes = (earlier) => {
  if (!earlier.length) return null;
  const [first, last] = [earlier[0].start, earlier[earlier.length - 1].start];
  return make("p", { class: "dim" }, "Not drawn, because it is long before: what was written ", first === last ? ["at about ", when(first)] : ["from ", when(first), " to ", when(last)], " UTC and is still in the log.");
};

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** How moments on an axis are written: as much as tells them apart. */
const momentFormat = (values) => {
  let [first, last] = [Infinity, -Infinity];
  for (const { start, end } of values) [first, last] = [Math.min(first, start), Math.max(last, end ?? start)];
  return last - first > 10 * DAY ? "%Y-%m-%d" : last - first < HOUR / 2 ? "%H:%M:%S" : "%m-%d %H:%M";
};

const EMPTY_SERIES = "others";

/** Rows of activity as the values of bars: `nameOf` says which series a row counts for, `amountOf` how much. */
const sumsOverTime = (activity, rows, nameOf, amountOf, names) => {
  const starts = activity.column("window_start_timestamp_ms");
  const length = windowLength(starts, rows);
  const sums = new Map();
  for (const row of rows) {
    if (!starts.has(row)) continue;
    for (const [name, value] of amountOf(row)) {
      if (!value) continue;
      const series = nameOf(row, name);
      const key = `${starts.numbers[row]} ${names.indexOf(series)}`;
      sums.set(key, (sums.get(key) ?? 0) + value);
    }
  }
  const tops = new Map();
  return [...sums]
    .map(([key, value]) => [...key.split(" ").map(Number), value])
    .sort((one, other) => one[0] - other[0] || one[1] - other[1])
    .map(([start, place, value]) => {
      const low = tops.get(start) ?? 0;
      tops.set(start, low + value);
      return { start, end: start + length, low, high: low + value, amount: value, series: names[place] };
    });
};

/** The length of a window: the least distance between two. */
const windowLength = (starts, rows) => {
  const distinct = new Set();
  for (const row of rows) if (starts.has(row)) distinct.add(starts.numbers[row]);
  const sorted = [...distinct].sort((a, b) => a - b);
  let least = Infinity;
  for (let i = 1; i < sorted.length; i++) least = Math.min(least, sorted[i] - sorted[i - 1]);
  return Number.isFinite(least) ? Math.min(least, DAY) : HOUR;
};

const HAPPENINGS = [
  ["commits", "commits"],
  ["expirations", "expirations"],
  ["deletions", "deletions"],
  ["completed_rebalances", "rebalances"],
];

/** What happened over time by type of event. */
const happeningsPlot = (activity, rows, title) => {
  const names = HAPPENINGS.map(([, word]) => word);
  const [sums, earlier] = whereMostAre(sumsOverTime(activity, rows, (_, name) => name, (row) => HAPPENINGS.map(([column, word]) => [word, activity.column(column).numbers[row]]), names));
  return plot(title, "Commits, expirations, deletions and rebalances by window of time; the table activity has the numbers.", earlier, () => barsOverTime(sums, names, "events", ",~s"));
};

/** Records or bytes over time by the groups that wrote most of them. */
const writersPlot = (activity, rows, title, measure) => {
  const weigh = measure === "bytes" ? ["key_bytes", "value_bytes"] : ["records"];
  const amountIn = (row) => weigh.reduce((sum, column) => sum + activity.column(column).numbers[row], 0);
  const groups = activity.column("group_id");
  const totals = new Map();
  for (const row of rows) if (groups.has(row)) totals.set(groups.numbers[row], (totals.get(groups.numbers[row]) ?? 0) + amountIn(row));
  const largest = [...totals].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([place]) => place);
  const nameAt = new Map(largest.map((place, rank) => [place, `${rank + 1}. ${plotName(groups.texts[place])}`]));
  const names = [...nameAt.values(), ...(totals.size > largest.length ? [EMPTY_SERIES] : [])];
  const [sums, earlier] = whereMostAre(sumsOverTime(activity, rows, (row) => nameAt.get(groups.numbers[row]) ?? EMPTY_SERIES, (row) => [["", amountIn(row)]], names));
  return plot(title, "By window of time, the groups with the most of them separately; the table activity has the numbers.", earlier, () => barsOverTime(sums, names, measure, measure === "bytes" ? "~s" : ",~s"));
};
