// A page of its own for a group, a topic, a table.

const unknown = (what, text) => ({ title: `${what} not found`, parts: [make("h1", { tabindex: "-1" }, `${what} not found`), make("p", {}, "This report has nothing about ", shown(text), ".")] });

const crumbs = (word, id) => make("p", { class: "crumbs" }, make("a", { href: `#${id}` }, word));

const findingsAbout = (test) => {
  const found = report.document.findings.filter(test);
  return found.length ? section("its-findings", `Findings (${number(found.length)})`, findingList(found)) : null;
};

const commandFor = (name, where = []) => {
  const { command } = report.document.tables.find((each) => each.name === name);
  return command && [...command, ...where.flatMap((each) => ["--where", each])].map(quoted).join(" ");
};

/** The rows of a table about a group or topic, if there are any, with the command that prints them. */
const partOf = async (name, title, column, value, columns, more = {}) => {
  const table = await openTable(name);
  if (!table) return null;
  const rows = Uint32Array.from(table.rowsWith(column, value));
  const omission = leftOut(name);
  if (!rows.length && !omission) return null;
  const names = columns.filter((each) => hasValues(table.column(each), rows));
  const shownOnes = names.map((each) => shownColumn(table, each));
  const where = [conditionFor(column, value)];
  const command = value.length < LONGEST_LINK ? commandFor(name, where) : null;
  const all = [
    rowTable({ label: title, columns: shownOnes, rows, find: (typed) => searchOf(names.map((each) => table.column(each)), typed), open: (row) => openRow(table, row), sort: more.sort ?? null }),
    make("details", { class: "as-command" }, make("summary", {}, `rows of ${name}, on the command line`), command ? commandLine(command) : make("p", {}, "No command names the source of this report, or the value is too long for one.")),
  ];
  const isFolded = more.summary && rows.length;
  return section(`part-${name}`, title, more.above?.(table, rows) ?? null, omission, isFolded ? folded(more.summary(table, rows), {}, () => all) : all);
};

/** Columns in which no row has anything only push the others out of view. */
const hasValues = (column, rows) => Boolean(column) && (!rows.length || rows.some((row) => column.has(row)));

const groupFacts = async (group) => {
  const facts = [];
  const add = (label, ...value) => facts.push(make("div", {}, make("dt", {}, label), make("dd", {}, ...value)));
  const groups = await openTable("groups");
  const [row] = groups?.rowsWith("group_id", group) ?? [];
  if (row !== undefined)
    for (const [name, label] of [["group_kind", "kind"], ["state", "state"], ["member_count", "members"], ["epoch", "epoch"], ["protocol_type", "protocol type"], ["protocol", "assignor"]])
      if (groups.column(name)?.has(row)) add(label, cellOf(groups.column(name), groups.at(name, row)));
  const lag = await openTable("group_lag");
  const [behind] = lag?.rowsWith("group_id", group) ?? [];
  if (behind !== undefined)
    for (const [name, label] of [["lag", "lag"], ["lost", "lost"], ["topics", "topics"], ["partitions", "partitions"], ["commit_timestamp_ms", "last commit"]])
      if (lag.column(name)?.has(behind)) add(label, cellOf(lag.column(name), lag.at(name, behind)));
  return { isThere: facts.length > 0, facts: make("dl", { class: "facts" }, facts) };
};

const OFFSET_COLUMNS = ["topic", "partition", "offset", "commit_timestamp_ms", "metadata", "leader_epoch"];
const GROUP_PARTS = [
  ["lag", "Lag", ["topic", "partition", "offset", "end_offset", "lag", "commit_timestamp_ms", "stable_lag", "lost", "problem"], { sort: ["lag", true] }],
  ["current_offsets", "Committed offsets", OFFSET_COLUMNS, {}],
  ["expirations", "When they expire", ["kind", "topic", "partition", "expires_timestamp_ms", "rule", "protected_by", "changes_with"], { sort: ["expires_timestamp_ms", false], summary: (table, rows) => firstExpiry(table, rows) }],
  ["pending_offsets", "Offsets of open transactions", ["topic", "partition", "offset", "producer_id", "since_timestamp_ms", "commit_timestamp_ms"]],
  ["members", "Members", ["member_id", "state", "member_epoch", "client_id", "client_host", "instance_id", "rack_id", "subscribed_topics", "subscribed_regex", "server_assignor", "log_timestamp_ms"]],
  ["assignments", "Assignments", ["member_id", "role", "topic", "partition", "subtopology_id", "task_type", "assignment_epoch"]],
  ["share_group_topics", "Topics of the share group", ["topic", "partition", "initialization"]],
  ["share_partitions", "Share partitions", ["topic_id", "partition", "start_offset", "available_count", "acknowledged_count", "archived_count", "write_timestamp_ms", "batches"]],
  ["regressions", "Offsets that went backwards", ["topic", "partition", "from_offset", "to_offset", "kind", "confidence", "commit_timestamp_ms"]],
  ["deletable_offsets", "What Kafka would delete on request", ["kind", "topic", "partition", "is_deletable", "reason", "error", "offset"], { summary: (table, rows) => deletableOnes(table, rows) }],
  ["checks", "Checks", ["level", "check", "detail", "member_id", "topic", "partition"]],
];

const firstExpiry = (table, rows) => {
  const at = table.column("expires_timestamp_ms");
  const times = [...rows].filter((row) => at.has(row)).map((row) => at.numbers[row]);
  const first = times.reduce((least, each) => Math.min(least, each), Infinity);
  return times.length ? [`${number(times.length)} of ${plural(rows.length, "row")} with a time, the first of them `, when(first), ` UTC (${distance(first)})`] : `${plural(rows.length, "row")}, none with a time`;
};

const deletableOnes = (table, rows) => {
  const isDeletable = table.column("is_deletable");
  const count = [...rows].filter((row) => isDeletable.at(row) === true).length;
  return `${count ? number(count) : "none"} of ${plural(rows.length, "row")}`;
};

const groupPage = async (group) => {
  const { isThere, facts } = await groupFacts(group);
  const about = findingsAbout((each) => each.group_ids.includes(group));
  const parts = [crumbs("All groups", "groups"), make("h1", { tabindex: "-1" }, dimmed("group "), whole(group)), facts, about];
  if (!isThere && !about && !report.groups.has(group)) return unknown("Group", group);
  const timeline = () => partOf("timeline", "Timeline", "group_id", group, ["at_timestamp_ms", "event", "member_id", "epoch", "member_count", "duration_ms", "detail"], { above: timelinePlot, sort: ["at_timestamp_ms", true] });
  const others = GROUP_PARTS.map(([name, title, columns, more]) => () => partOf(name, title, "group_id", group, columns, more));
  return { title: `group ${plotName(group)}`, parts, later: [others[0], timeline, ...others.slice(1), () => groupActivity(group)] };
};

/** Events of a group over time, a line for each kind of event. */
const timelinePlot = (table, rows) => {
  const [at, event] = [table.column("at_timestamp_ms"), table.column("event")];
  const timed = [...rows].filter((row) => at.has(row) && event.has(row));
  if (timed.length < 2) return null;
  const [values, earlier] = whereMostAre(timed.map((row) => ({ start: at.numbers[row], series: words(event.texts[event.numbers[row]]) })));
  return plot("Events over time (UTC)", "A mark for each event; the table below has all of them.", earlier, () => ({
    height: new Set(values.map((each) => each.series)).size * 20,
    data: { values: values.slice(0, 5000) },
    mark: { type: "tick", thickness: 2, size: 12, color: styleValue("--series-0") },
    encoding: {
      x: { field: "start", type: "temporal", scale: { type: "utc" }, title: null, axis: { grid: true, labelOverlap: true, tickCount: 8, format: momentFormat(values) } },
      y: { field: "series", type: "nominal", title: null, axis: { labelLimit: 220 } },
      tooltip: [{ field: "series", type: "nominal", title: "event" }, { field: "start", type: "temporal", timeUnit: "utcyearmonthdatehoursminutesseconds", format: "%Y-%m-%d %H:%M:%S", title: "at" }],
    },
  }));
};

const groupActivity = async (group) => {
  const activity = await openTable("activity");
  const rows = activity ? Uint32Array.from(activity.rowsWith("group_id", group)) : [];
  if (!rows.length) return null;
  return section("part-activity", "Activity", happeningsPlot(activity, rows, "What happened, by type, over time"),
    make("p", { class: "sources" }, "rows: ", make("a", { href: tableAddress("activity", [conditionFor("group_id", group)]) }, "activity of this group")));
};

const TOPIC_PARTS = [
  ["lag", "Groups that read it, with their lag", ["group_id", "partition", "offset", "end_offset", "lag", "commit_timestamp_ms", "lost", "problem"], ["lag", true]],
  ["current_offsets", "Committed offsets", ["group_id", "partition", "offset", "commit_timestamp_ms", "metadata"]],
  ["assignments", "Members that have its partitions", ["group_id", "member_id", "role", "partition", "assignment_epoch"]],
  ["expirations", "When offsets expire", ["group_id", "partition", "expires_timestamp_ms", "rule", "protected_by"], ["expires_timestamp_ms", false]],
  ["share_group_topics", "Share groups that read it", ["group_id", "partition", "initialization"]],
  ["regressions", "Offsets that went backwards", ["group_id", "partition", "from_offset", "to_offset", "kind", "confidence", "commit_timestamp_ms"]],
  ["log_ends", "Its partitions", ["partition", "log_start_offset", "log_end_offset", "high_watermark", "last_stable_offset"]],
];

const topicPage = async (topic) => {
  const places = placesOf(await dictionary("topic"));
  const about = findingsAbout((each) => each.topics.includes(topic));
  if (!places.has(topic) && !about) return unknown("Topic", topic);
  const parts = [crumbs("All topics", "topics"), make("h1", { tabindex: "-1" }, dimmed("topic "), whole(topic)), await topicFacts(topic), about];
  return { title: `topic ${plotName(topic)}`, parts, later: TOPIC_PARTS.map(([name, title, columns, sort]) => () => partOf(name, title, "topic", topic, columns, { sort })) };
};

const topicFacts = async (topic) => {
  const offsets = await openTable("current_offsets");
  const groups = new Map();
  const ids = offsets?.column("group_id");
  for (const row of offsets?.rowsWith("topic", topic) ?? []) groups.set(ids.texts[ids.numbers[row]], true);
  if (!groups.size) return null;
  return make("dl", { class: "facts" }, make("div", {}, make("dt", {}, "read by"), make("dd", {}, plural(groups.size, "group"), ": ", listed([...groups.keys()], groupLink))));
};

const tablePage = async (name, chosen) => {
  const table = await openTable(name);
  if (!table) return unknown("Table", name);
  const where = chosen.getAll("where");
  const tests = where.map((each) => conditionOf(table, each));
  const held = tests.filter(Boolean);
  const rows = held.length ? allRows(table.rows).filter((row) => held.every((test) => test(row))) : allRows(table.rows);
  const names = [...table.columns.keys()];
  const sort = chosen.get("sort");
  const changed = (state) => {
    const pairs = [["table", name], ...where.map((each) => ["where", each]), ...(state.typed ? [["find", state.typed]] : []), ...(state.sort ? [["sort", `${state.sort[1] ? "-" : ""}${state.sort[0]}`]] : [])];
    history.replaceState(null, "", addressOf(pairs));
  };
  const command = commandFor(name, where);
  return {
    title: `table ${name}`,
    parts: [
      crumbs("All tables", "tables"),
      make("h1", { tabindex: "-1" }, dimmed("table "), name),
      make("p", {}, table.described.about),
      where.length ? make("p", { class: "chosen" }, "where ", where.flatMap((each, i) => [i ? " and " : "", make("code", {}, visible(each.slice(0, 200)))]), " ", make("a", { href: tableAddress(name) }, "show all rows")) : null,
      held.length < tests.length ? make("p", { class: "left-out" }, "A condition that only the command understands was left out here.") : null,
      leftOut(name),
      command ? commandLine(command) : null,
      rowTable({ label: `Rows of ${name}`, columns: names.map((each) => shownColumn(table, each)), rows, find: (typed) => searchOf(names.map((each) => table.column(each)), typed), typed: chosen.get("find") ?? "", sort: sort ? [sort.replace(/^-/, ""), sort.startsWith("-")] : null, open: (row) => openRow(table, row), changed }),
    ],
  };
};
