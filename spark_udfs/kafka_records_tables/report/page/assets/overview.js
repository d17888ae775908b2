// The first page: findings, numbers, groups, activity, topics, tables.

const ASKS = { critical: "act now", high: "look at it today", moderate: "look at it this week", low: "look at it when there is time" };

/** What to do about the worst finding and by when, how many there are, and what they do not say. */
const headline = () => {
  const { findings } = report.document;
  const counts = LEVELS.map((level) => [level, findings.filter((each) => each.level === level).length]).filter(([, count]) => count);
  const [worst] = findings;
  const said =
    !worst ? make("p", { class: "verdict" }, "Nothing was found that needs attention.")
    : worst.level === "note" ? make("p", { class: "verdict" }, `${plural(findings.length, "note")}, no alarm.`)
    : make("p", { class: "verdict" }, make("strong", { class: worst.level }, `${worst.level}: ${ASKS[worst.level]}`), " – ", visible(worst.title), concerned(worst), deadline(worst), ".");
  const all = worst && worst.level !== "note" && findings.length > 1 ? make("p", { class: "dim" }, "All findings: ", counts.map(([level, count]) => `${number(count)} ${level}`).join(", "), ".") : null;
  return [said, all, laterThanRead(), notJudged()];
};

/** Whom a finding is about: what it is the only one of, a group rather than a topic. */
const concerned = (finding) => {
  const { group_ids: groups, topics } = finding;
  const [first] = groups.length > 1 && topics.length === 1 ? namedBy(finding).slice(1) : namedBy(finding);
  return first ? [": ", first] : null;
};

/** Groups, topics and transactional ids of a finding, the first of each and how many others there are. */
const namedBy = ({ group_ids: groups, topics, transactional_ids: ids }) => {
  const told = (word, names, link) => [names.length === 1 ? `${word} ` : `${word}s `, link(names[0], 60), names.length > 1 ? ` and ${number(names.length - 1)} more` : null];
  return [["group", groups, groupLink], ["topic", topics, topicLink], ["transactional id", ids, transactionLink]].filter(([, names]) => names.length).map((each) => told(...each));
};

const deadline = ({ until_timestamp_ms: until }) => (until === null ? null : [", gets worse ", when(until), ` UTC (${deadlineDistance(until)})`]);

const laterThanRead = () => {
  if (!isOfThePast()) return null;
  const { at_timestamp_ms: at, made_timestamp_ms: made } = report.document.request;
  return make("p", { class: "warning" }, "This report is about ", when(at), " UTC, when the last record that it read was written: ", make("b", {}, `${span(made - at)} before it was made`), ". It does not cover what happened since, and counts ages and deadlines from that moment.");
};

/** What the findings say nothing about, because the ends of logs are unknown. */
const notJudged = () => {
  const { not_judged: what } = report.document;
  return what === null ? null : make("p", { class: "warning not-judged" }, `${what[0].toUpperCase()}${what.slice(1)}.`);
};

/** Tables that are not there, by the reason. */
const notRead = () => {
  const byReason = new Map();
  for (const [name, why] of Object.entries(report.document.missing)) byReason.set(why, [...(byReason.get(why) ?? []), words(name)]);
  if (!byReason.size) return null;
  const all = Object.keys(report.document.missing).map(words).join(", ");
  return folded(["Not in this report: ", all], { class: "not-read" }, () => [...byReason].map(([why, names]) => make("p", {}, names.join(", "), " – ", shown(why, 240))));
};

/** What changed since the earlier report, if there was one. */
const diffSection = () => {
  const { diff, findings } = report.document;
  if (!diff) return null;
  const line = (mark, finding, more = null) => make("li", {}, make("b", {}, mark), " ", badge(finding.level), " ", visible(finding.title), concerned(finding), more);
  const changed = (mark, changes) => changes.map(({ finding, before }) => line(mark, findings[finding], ` (was ${before})`));
  const lines = [...diff.new.map((at) => line("new", findings[at])), ...changed("worse", diff.worse), ...changed("better", diff.better), ...diff.gone.map((each) => line("gone", each))];
  return section("diff", "Changed since the earlier report", make("p", {}, "The earlier report is about ", when(diff.old_at_timestamp_ms), " UTC."), diff.notes.map((note) => make("p", { class: "warning" }, visible(note))),
    lines.length ? make("ul", { class: "reading" }, lines) : make("p", { class: "fine" }, "No finding is new, worse, better or gone."));
};

const requestFacts = () => {
  const { request, counts } = report.document;
  const pairs = [
    ["source", shown(request.source, 160)],
    ["as of", [when(request.at_timestamp_ms), " UTC"]],
    ["made", [when(request.made_timestamp_ms), " UTC"]],
    ["read", `${plural(counts.records, "record")}, ${size(Number(counts.bytes))}`],
    ["retention of offsets", span(request.retention_ms)],
    ...(request.groups ? [["only groups", listed(request.groups, groupLink)]] : []),
    ...(request.topic_filter.length ? [["only topics", request.topic_filter.map(visible).join(", ")]] : []),
  ];
  return make("dl", { class: "facts" }, pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
};

const numbersSection = () => {
  const numbers = report.document.numbers.filter((each) => each.value !== 0);
  if (!numbers.length) return null;
  const isCut = report.document.omissions.length ? make("p", { class: "dim" }, "These count and sum all rows, including those that this file leaves out because of its size.") : null;
  return section("numbers", "Numbers", isCut, make("ul", { class: "numbers" }, numbers.map((each) => {
    const described = report.document.tables.find((table) => table.name === each.rows.table);
    const value = make("b", {}, amount(each.value, each.unit));
    const label = make("span", {}, visible(each.label), each.unit && !["bytes", "ms"].includes(each.unit) ? make("small", {}, ` (${visible(each.unit)})`) : null);
    return make("li", {}, described ? make("a", { href: tableAddress(each.rows.table, each.rows.where) }, value, label) : make("div", {}, value, label));
  })));
};

/** Groups with what other tables say of them in one row each. */
const groupsSection = async (chosen) => {
  const groups = await openTable("groups");
  if (!groups) return null;
  const lag = await openTable("group_lag");
  const ids = groups.column("group_id").numbers;
  const worst = new Map();
  for (const finding of report.document.findings)
    for (const group of finding.group_ids) if (!worst.has(group)) worst.set(group, finding.level);
  const texts = groups.column("group_id").texts;
  const levels = Array.from(ids, (place) => worst.get(texts[place]) ?? null);
  const ranks = levels.map((level) => (level === null ? null : LEVELS.length - LEVELS.indexOf(level)));
  const columns = [
    shownColumn(groups, "group_id", "group"),
    ...(worst.size ? [{ ...workedOut("finding", "finding", "text", ranks, (_, row) => badge(levels[row]), "the worst finding about it"), length: () => BADGE }] : []),
    shownColumn(groups, "group_kind", "kind"),
    shownColumn(groups, "state", "state"),
    shownColumn(groups, "member_count", "members"),
    ...(lag ? joinedColumns(groups, lag, [["lag", "lag"], ["commit_timestamp_ms", "last commit"], ["lost", "lost"], ["partitions", "partitions"]]) : []),
    shownColumn(groups, "epoch", "epoch"),
  ];
  const state = { kind: chosen.get("group-kind") ?? "", state: chosen.get("state") ?? "" };
  const matching = () => allRows(groups.rows).filter((row) => (!state.kind || groups.at("group_kind", row) === state.kind) && (!state.state || (groups.at("state", row) ?? "unknown") === state.state));
  const chips = make("p", { class: "chosen" });
  const showChips = () => {
    const text = [state.kind, state.state].filter(Boolean).join(", ");
    chips.replaceChildren(...(text ? [`only ${text} `, make("a", { href: "#groups" }, "show all")] : []));
  };
  showChips();
  const table = rowTable({
    label: "Groups",
    columns,
    rows: matching(),
    find: (typed) => searchOf(["group_id", "state", "group_kind"].map((name) => groups.column(name)), typed),
    sort: worst.size ? ["finding", true] : null,
    open: (row) => openRow(groups, row),
    filters: chips,
  });
  return section("groups", "Groups", leftOut("groups", "The counts by kind and state cover only the rows in this file."), kindsAndStates(groups), table, groupsKey(groups, lag));
};

const BADGE = 11; // characters that the widest level takes

/** What the columns do not say by themselves. */
const groupsKey = (groups, lag) => {
  const kinds = new Set(Array.from(allRows(groups.rows), (row) => groups.at("group_kind", row)));
  const said = [
    kinds.has("simple") && "A simple group is one whose clients assign themselves partitions, as Flink and Spark do: Kafka calls it Empty, and it has no members, also while they consume.",
    lag && "Lag is what is left to consume; lost is the part of it that the log of the topic does not have any more.",
    lag && kinds.has("share") && "Share groups commit no offsets: the table share_lag has their lag.",
    "– is what the log does not tell.",
  ];
  return make("p", { class: "dim" }, said.filter(Boolean).join(" "));
};

/** Columns of another table that has one row for each group. */
const joinedColumns = (groups, other, names) => {
  const rowOf = new Map();
  other.column("group_id").numbers.forEach((place, row) => rowOf.set(place, row));
  const ids = groups.column("group_id").numbers;
  return names.filter(([name]) => other.column(name)).map(([name, label]) => {
    const column = other.column(name);
    const values = Array.from(ids, (place) => (rowOf.has(place) ? column.at(rowOf.get(place)) : null));
    return { ...workedOut(name, label, column.kind, values, null, column.about) };
  });
};

const kindsAndStates = (groups) => {
  const counts = new Map();
  const [kinds, states] = [new Map(), new Map()];
  for (let row = 0; row < groups.rows; row++) {
    const kind = groups.at("group_kind", row) ?? "unknown";
    const state = groups.at("state", row) ?? "unknown";
    counts.set(`${kind} ${state}`, (counts.get(`${kind} ${state}`) ?? 0) + 1);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    states.set(state, (states.get(state) ?? 0) + 1);
  }
  const byCount = (map) => [...map].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  const [rows, columns] = [byCount(kinds), byCount(states)];
  const link = (count, pairs) => (count ? make("a", { href: addressOf(pairs) }, number(count)) : dimmed("–"));
  const head = make("tr", {}, make("th", { scope: "col" }, "kind"), columns.map((state) => make("th", { scope: "col", class: "right" }, visible(state))), make("th", { scope: "col", class: "right" }, "all"));
  const lines = rows.map((kind) =>
    make("tr", {}, make("th", { scope: "row" }, visible(kind)),
      columns.map((state) => make("td", { class: "right" }, link(counts.get(`${kind} ${state}`), [["group-kind", kind], ["state", state]]))),
      make("td", { class: "right" }, link(kinds.get(kind), [["group-kind", kind]])))
  );
  return make("div", { class: "scrolling", tabindex: "0", role: "region", "aria-label": "Groups by kind and state" }, make("table", { class: "plain" }, make("caption", {}, "Groups by kind and state"), make("thead", {}, head), make("tbody", {}, lines)));
};

const activitySection = async () => {
  const activity = await openTable("activity");
  if (!activity?.rows) return null;
  const rows = allRows(activity.rows);
  const place = make("div");
  const measure = make("select", { "aria-label": "What is summed" }, ["records", "bytes"].map((name) => make("option", { value: name }, name)));
  const draw = () => place.replaceChildren(writersPlot(activity, rows, `${measure.value} in __consumer_offsets by group, over time`, measure.value));
  measure.addEventListener("change", draw);
  draw();
  return section("activity", "Activity", leftOut("activity", "The plots cover only the rows in this file."), make("div", { class: "plots" },
    make("div", {}, make("label", { class: "measure" }, "Sum up ", measure), place),
    happeningsPlot(activity, rows, "What happened, by type, over time")),
    make("p", { class: "sources" }, "rows: ", make("a", { href: tableAddress("activity") }, "activity")));
};

/** Who reads a topic: every topic with committed offsets, and how many groups have them. */
const topicsSection = async () => {
  const offsets = await openTable("current_offsets");
  if (!offsets?.rows) return null;
  const topics = topicsRead(offsets, await openTable("lag"));
  const texts = offsets.column("topic").texts;
  const names = topics.map((each) => texts[each.place]);
  const columns = [
    workedOut("topic", "topic", "text", names),
    workedOut("groups", "groups", "number", topics.map((each) => each.groups.size), null, "groups with a committed offset for it"),
    workedOut("partitions", "partitions with offsets", "number", topics.map((each) => each.partitions.size), null, "partitions for which a group has committed"),
    workedOut("offsets", "offsets", "number", topics.map((each) => each.offsets), null, "committed offsets"),
    workedOut("lag", "largest lag", "number", topics.map((each) => each.lag), null, "of one group in one partition"),
    workedOut("commit", "last commit", "time", topics.map((each) => each.commit)),
  ];
  const rows = allRows(topics.length);
  const find = (typed) => {
    const sought = typed.toLowerCase();
    return (row) => names[row].toLowerCase().includes(sought);
  };
  return section("topics", "Who reads a topic", leftOut("current_offsets", "The counts cover only the rows in this file."), leftOut("lag", "The largest lag is that of the rows in this file."), rowTable({ label: "Topics", columns, rows, find, sort: ["groups", true] }));
};

const topicsRead = (offsets, lag) => {
  const found = new Map();
  const [topic, group, partition, commit] = ["topic", "group_id", "partition", "commit_timestamp_ms"].map((name) => offsets.column(name));
  for (let row = 0; row < offsets.rows; row++) {
    const place = topic.numbers[row];
    if (!found.has(place)) found.set(place, { place, groups: new Set(), partitions: new Set(), offsets: 0, lag: null, commit: null });
    const each = found.get(place);
    each.groups.add(group.numbers[row]);
    each.partitions.add(partition.numbers[row]);
    each.offsets++;
    if (commit.has(row)) each.commit = Math.max(each.commit ?? -Infinity, commit.numbers[row]);
  }
  const behind = lag?.column("lag");
  if (behind && !behind.texts)
    for (let row = 0; row < lag.rows; row++) {
      const each = found.get(lag.column("topic").numbers[row]);
      if (each && behind.has(row)) each.lag = Math.max(each.lag ?? -Infinity, behind.numbers[row]);
    }
  return [...found.values()];
};

const tablesSection = () =>
  section("tables", "Tables", make("p", {}, "Every number here is in a row of one of these tables, or counts or sums such rows."),
    make("ul", { class: "tables" }, report.document.tables.map((each) => make("li", {}, make("a", { href: tableAddress(each.name) }, each.name), " ", dimmed(plural(each.allRows, "row")), make("p", {}, each.about)))),
    Object.keys(report.document.missing).length
      ? make("details", {}, make("summary", {}, "tables that this source does not have"), make("dl", { class: "pairs" }, Object.entries(report.document.missing).flatMap(([name, why]) => [make("dt", {}, name), make("dd", {}, visible(why))])))
      : null);

const MOST_READING = 200;

/** What was found while the logs were read: damage first, notes folded. What differs in numbers alone is one line. */
const readingSection = () => {
  const { reading } = report.document;
  if (!reading.length) return null;
  const [damage, notes] = [reading.filter((each) => each.severity === "damage"), reading.filter((each) => each.severity !== "damage")];
  return section("reading", "Problems while reading", damage.length ? readingLines(damage) : null,
    notes.length ? folded(`${plural(notes.length, "problem")} without damage: what the logs do not tell`, {}, () => notesByReason(notes)) : null);
};

/** One line for each reason; others of the same reason are folded behind it. */
const notesByReason = (notes) =>
  make("ul", { class: "reading" }, [...groupedBy(notes, (each) => each.reason).values()].map((alike) => {
    const [first, ...others] = [...groupedBy(alike, (each) => each.what.replace(/\d+/g, "0")).values()];
    const line = readingLine(first);
    if (others.length) line.append(folded(`${plural(others.length, "more note")} of this kind`, {}, () => readingLines(others.flat())));
    return line;
  }));

const readingLines = (found) => {
  const alike = groupedBy(found, (each) => each.what.replace(/\d+/g, "0"));
  return [make("ul", { class: "reading" }, [...alike.values()].slice(0, MOST_READING).map(readingLine)),
    alike.size > MOST_READING ? make("p", { class: "dim" }, `The first ${MOST_READING} of ${number(alike.size)}.`) : null];
};

const groupedBy = (items, keyOf) => {
  const found = new Map();
  for (const each of items) found.set(keyOf(each), [...(found.get(keyOf(each)) ?? []), each]);
  return found;
};

/** One sort of damage or note: where it is, and what it means for which answers. */
const readingLine = (alike) => {
  const [{ severity, what }] = alike;
  const mark = make("span", { class: `badge ${severity === "damage" ? "high" : "note"}` }, severity);
  const places = groupedBy(alike, (each) => each.place);
  const meanings = groupedBy(alike, (each) => each.consequence.replace(/\d+/g, "0"));
  const meant = [...meanings.values()].map(([{ consequence }]) => consequence);
  const isOne = places.size === 1;
  const where = isOne ? ["in ", visible(alike[0].place), ": "] : [make("b", {}, plural(places.size, "place")), ", for instance in ", visible(alike[0].place), ": "];
  return make("li", {}, mark, " ", where, whole(what, MOST_EXPLAINED),
    make("p", { class: "dim" }, "What that means: ", meant.map((each, i) => [i ? "; " : "", visible(each)])),
    isOne ? null : folded(`all ${number(places.size)} places`, {}, () => [
      make("ul", {}, [...places.values()].slice(0, MOST_READING).map((each) => make("li", {}, visible(each[0].place), ": ", whole(each[0].what, MOST_EXPLAINED)))),
      places.size > MOST_READING ? make("p", { class: "dim" }, `The first ${MOST_READING} of them.`) : null,
    ]));
};

/** A line that says what of a table is not in this file, what that means for sums, and the command that prints it. */
const leftOut = (name, sums = "") => {
  const omission = report.document.omissions.find((each) => each.what === name);
  if (!omission) return null;
  const all = report.document.tables.find((each) => each.name === name).allRows;
  return make("div", { class: "left-out" }, make("p", {}, `${number(omission.row_count)} of ${number(all)} rows of ${name} are left out of this file for its size. ${sums ? `${sums} ` : ""}This prints all of them:`), commandLine(omission.command));
};

const overview = async (chosen) => {
  const main = [make("div", { class: "intro" }, make("h1", { tabindex: "-1" }, "Kafka coordinators, according to their records"), headline(), requestFacts(), notRead()), diffSection(), findingsSection(chosen), numbersSection()];
  return { title: "Kafka records report", parts: main, later: [() => groupsSection(chosen), activitySection, topicsSection, tablesSection, readingSection] };
};
