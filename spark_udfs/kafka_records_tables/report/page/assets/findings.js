// What somebody should look at, the worst first.

const LEVELS = ["critical", "high", "moderate", "low", "note"];
const FINDINGS_AT_ONCE = 25;
const NAMES_AT_ONCE = 6;
const MOST_EXPLAINED = 2000;

const badge = (level) => make("span", { class: `badge ${level}` }, level);

const listed = (texts, link) => {
  const rest = texts.slice(NAMES_AT_ONCE);
  const more = rest.length && folded(`and ${number(rest.length)} more`, { class: "more-names" }, () => make("p", {}, rest.flatMap((text, i) => (i ? [", ", link(text)] : [link(text)]))));
  return [texts.slice(0, NAMES_AT_ONCE).flatMap((text, i) => (i ? [", ", link(text)] : [link(text)])), more ? [" ", more] : []].flat();
};

const transactionLink = (id) => make("a", { href: tableAddress("transactions", [conditionFor("transactional_id", id)]) }, shown(id));

const factsOf = (finding) => {
  const facts = [];
  const add = (label, ...value) => facts.push(make("div", {}, make("dt", {}, label), make("dd", {}, ...value)));
  if (finding.group_ids.length) add(finding.group_ids.length === 1 ? "group" : "groups", listed(finding.group_ids, groupLink));
  if (finding.topics.length) add(finding.topics.length === 1 ? "topic" : "topics", listed(finding.topics, topicLink));
  if (finding.partitions.length) add("partitions", ranges(finding.partitions));
  if (finding.transactional_ids.length) add("transactional ids", listed(finding.transactional_ids, transactionLink));
  const note = finding.since_note ? [" ", dimmed(["(", visible(finding.since_note), ")"])] : null;
  if (finding.since_timestamp_ms !== null) add("since", when(finding.since_timestamp_ms), " ", dimmed(distance(finding.since_timestamp_ms)), note);
  else if (note) add("since", visible(finding.since_note));
  if (finding.until_timestamp_ms !== null) add("gets worse", when(finding.until_timestamp_ms), " ", dimmed(deadlineDistance(finding.until_timestamp_ms)));
  if (finding.is_going_on !== null) add("goes on", finding.is_going_on ? "yes" : "no");
  if (finding.who.length) add("who", visible(finding.who.map((each) => [each.group_id, each.client_id, each.member_id, each.host].filter(Boolean).join(", ") + `: ${each.did}`).join("; ")));
  const scale = Object.entries(finding.scale);
  if (scale.length) add("how much", visible(scale.map(([name, value]) => `${words(name)} ${number(value)}`).join(", ")));
  if (finding.causes.length) add("how sure of the cause", finding.confidence);
  else add("how sure", finding.confidence === "high" ? "certain from the records" : finding.confidence);
  const doubt = finding.why_not_sure ? make("p", { class: "doubt" }, "Why not certain: ", visible(finding.why_not_sure), ".") : null;
  return [make("dl", { class: "facts" }, facts), doubt];
};

const dimmed = (text) => make("span", { class: "dim" }, text);

const MOST_RANGES = 12;

/** 0–3, 7, 9–11. */
const ranges = (numbers) => {
  const found = [];
  for (const each of numbers) {
    const last = found[found.length - 1];
    if (last && each === last[1] + 1) last[1] = each;
    else found.push([each, each]);
  }
  const text = found.slice(0, MOST_RANGES).map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
  return found.length > MOST_RANGES ? `${text} … (${plural(numbers.length, "partition")})` : text;
};

/** The causes that remain, with what speaks for and against each, and what the report lacked. */
const causesOf = (finding) => {
  if (!finding.causes.length) return null;
  const facts = (label, evidence) => (evidence.length ? make("p", { class: "dim" }, label, ": ", evidence.map((each, i) => [i ? "; " : "", visible(each.shows), each.offset === null ? "" : ` (${each.topic}-${each.partition}, offset ${number(each.offset)})`]).flat()) : null);
  const causes = finding.causes.map((each) => make("li", {}, make("p", {}, whole(each.statement, MOST_EXPLAINED), " ", dimmed(`confidence ${each.confidence}`)), facts("for", each.evidence_for), facts("against", each.evidence_against)));
  const lacked = finding.lacked.map((each) => make("p", { class: "doubt" }, visible(each.what), ", which would tell these causes apart: ", visible(each.causes.join(", ")), "."));
  return make("div", { class: "next" }, make("h4", {}, finding.causes.length === 1 ? "Cause" : "Causes that remain"), make("ul", {}, causes), lacked);
};

const effectsOf = (finding) =>
  finding.effects.length
    ? folded(`effects (${number(finding.effects.length)})`, { class: "evidence" }, () => make("ul", {}, finding.effects.map((each) => make("li", {}, make("p", {}, visible(each.title), ": ", whole(each.problem, MOST_EXPLAINED))))))
    : null;

const evidenceOf = (finding) => {
  if (!finding.evidence.length) return null;
  const count = Math.max(finding.evidence_count, finding.evidence.length);
  return folded(`evidence (${number(count)})`, { class: "evidence" }, () => {
    const lines = finding.evidence.map((each) =>
      make(
        "tr",
        {},
        make("th", { scope: "row" }, each.topic === null ? "–" : [shown(each.topic), each.partition === null ? "" : `-${each.partition}`]),
        make("td", { class: "right" }, each.offset === null ? "–" : number(each.offset)),
        make("td", {}, each.timestamp_ms === null ? "–" : when(each.timestamp_ms)),
        make("td", { class: "prose" }, whole(each.shows))
      )
    );
    const head = ["log partition", "offset", "time (UTC)", "shows"].map((name, i) => make("th", { scope: "col", class: i === 1 ? "right" : null }, name));
    return [
      make("div", { class: "scrolling", tabindex: "0", role: "region", "aria-label": "Evidence" }, make("table", { class: "plain" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, lines))),
      count > lines.length ? make("p", { class: "dim" }, `${lines.length} of ${number(count)}; the tables have the rest.`) : null,
    ];
  });
};

const measuredOf = (finding) => {
  const names = Object.keys(finding.measured);
  if (!names.length && !Object.keys(finding.thresholds).length) return null;
  const pairs = (values) => Object.entries(values).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, measure(name, value))]);
  return make(
    "details",
    { class: "evidence" },
    make("summary", {}, "what was measured, and the thresholds of this kind of finding"),
    make("dl", { class: "pairs" }, pairs(finding.measured), Object.entries(finding.thresholds).map(([name, value]) => thresholdPair(name, value)))
  );
};

/** A threshold with its unit, and what it decides. */
const thresholdPair = (name, value) => {
  const { kind, about } = report.document.thresholds[name] ?? {};
  const text = kind === "duration" ? span(value) : kind === "share" ? `${number(value * 100)} %` : measure(name, value);
  return [make("dt", {}, `threshold ${name}`), make("dd", {}, text, about ? [" – ", dimmed(about)] : null)];
};

const measure = (name, value) => {
  if (typeof value === "number" && /_timestamp_ms$/.test(name)) return when(value);
  if (typeof value === "number" && /_ms$/.test(name)) return value < 1000 ? span(value) : `${span(value)} (${number(value)} ms)`;
  if (typeof value === "number" && /^share_/.test(name)) return `${number(value * 100)} %`;
  return typeof value === "number" ? number(value) : shown(typeof value === "string" ? value : JSON.stringify(value));
};

const stepLine = (step) => [make("p", {}, visible(step.what)), step.command === null ? null : commandLine(step.command)];

/** What to do first. */
const firstStep = ({ next: [first] }) => (first ? make("div", { class: "first" }, make("h4", {}, "What to do first"), stepLine(first)) : null);

/** What to do after the first step; all of it where that is not shown. */
const stepsOf = (finding, isFirstShown) => {
  const steps = finding.next.slice(isFirstShown ? 1 : 0);
  if (!steps.length) return null;
  return make("div", { class: "next" }, make("h4", {}, isFirstShown ? "What to do after that" : "What to do next"), make("ol", {}, steps.map((step) => make("li", {}, stepLine(step)))));
};

const rowsOf = (finding) =>
  finding.rows.length
    ? make("p", { class: "sources" }, "rows: ", finding.rows.flatMap((each, i) => [i ? ", " : "", make("a", { href: tableAddress(each.table, each.where) }, visible([each.table, ...each.where].join(" ").slice(0, 120)))]))
    : null;

/** What happened, to whom; since when and how bad; the likeliest causes; what to do first. The details are folded. */
const findingCard = (finding, place, level = 3) => {
  const isFirstShown = finding.level !== "note";
  const details = () => [
    make("p", { class: "what" }, whole(finding.problem, MOST_EXPLAINED)),
    finding.impact ? make("p", {}, whole(finding.impact, MOST_EXPLAINED)) : null,
    incidentAxis(finding),
    causesOf(finding),
    factsOf(finding),
    stepsOf(finding, isFirstShown),
    effectsOf(finding),
    evidenceOf(finding),
    measuredOf(finding),
    make("p", { class: "kind" }, "kind ", make("code", {}, finding.kind)),
    rowsOf(finding),
  ];
  return make(
    "li",
    { class: `finding ${finding.level}` },
    make(
      "article",
      { "aria-labelledby": `finding-${place}` },
      make("header", {}, badge(finding.level), make(`h${level}`, { id: `finding-${place}` }, visible(finding.title)), make("p", { class: "concerned" }, namedBy(finding).flatMap((each, i) => [i ? ", " : "", each]))),
      finding.how_bad ? make("p", { class: "how-bad" }, whole(finding.how_bad, MOST_EXPLAINED)) : null,
      finding.cause_lines.map((line) => make("p", { class: "cause-line" }, whole(line, MOST_EXPLAINED))),
      isFirstShown ? firstStep(finding) : null,
      folded(["details", make("span", { class: "unseen" }, ": ", visible(finding.title))], { class: "details" }, details)
    )
  );
};

/** A list of findings of which the first are drawn, and more when somebody asks. */
const findingList = (findings, level = 3) => {
  const list = make("ol", { class: "findings" });
  const more = make("button", { type: "button", class: "more" });
  let drawn = 0;
  const draw = (most) => {
    const next = findings.slice(drawn, drawn + most);
    list.append(...next.map((finding) => findingCard(finding, report.document.findings.indexOf(finding), level)));
    const focus = drawn && list.children[drawn]?.querySelector("h3, h4");
    drawn += next.length;
    more.hidden = drawn >= findings.length;
    more.textContent = `show more: ${number(findings.length - drawn)} left`;
    focus && (focus.setAttribute("tabindex", "-1"), focus.focus());
  };
  more.addEventListener("click", () => draw(FINDINGS_AT_ONCE));
  draw(FINDINGS_AT_ONCE);
  return make("div", {}, brokersNamed(findings), list, more);
};

/** What $BOOTSTRAP is, where a command has it: files name no brokers. */
const brokersNamed = (findings) => {
  const isThere = findings.some((each) => each.next.some((step) => step.command?.includes('"$BOOTSTRAP"')));
  return isThere ? make("p", { class: "brokers" }, make("code", {}, "$BOOTSTRAP"), " in a command is the address of a broker of this cluster, which files do not contain. Set it once, and all commands run unchanged: ", make("code", {}, "export BOOTSTRAP=HOST:PORT")) : null;
};

/** What needs somebody; notes are folded, but for a line about lost or repeated records. */
const incidentsAndNotes = (findings) => {
  const [incidents, notes] = [findings.filter((each) => each.level !== "note"), findings.filter((each) => each.level === "note")];
  const lines = notes.map((each) => each.note_line).filter((line) => line);
  return make("div", {}, incidents.length ? findingList(incidents) : null,
    lines.map((line) => make("p", { class: "note-line" }, badge("note"), " ", visible(line))),
    notes.length ? folded(`${plural(notes.length, "note")}: no alarm`, { class: "notes" }, () => findingList(notes)) : null);
};

/** All findings, with what chooses among them; the choice stands in the address, so that it can be sent. */
const findingsSection = (chosen) => {
  const { findings } = report.document;
  if (!findings.length) return null;
  const state = { levels: new Set(chosen.getAll("level")), kind: chosen.get("kind") ?? "", about: chosen.get("about") ?? "" };
  const place = make("div");
  const count = make("p", { class: "row-count", role: "status" });
  const chips = LEVELS.filter((level) => findings.some((each) => each.level === level)).map((level) => {
    const found = findings.filter((each) => each.level === level).length;
    const chip = make("button", { type: "button", class: `chip ${level}`, "aria-pressed": String(state.levels.has(level)) }, level, " ", make("b", {}, number(found)));
    chip.addEventListener("click", () => {
      state.levels.has(level) ? state.levels.delete(level) : state.levels.add(level);
      chip.setAttribute("aria-pressed", String(state.levels.has(level)));
      show(true);
    });
    return chip;
  });
  const kinds = [...new Set(findings.map((each) => each.kind))].sort();
  const kind = make("select", { "aria-label": "Kind of finding" }, make("option", { value: "" }, "all kinds"), kinds.map((each) => make("option", { value: each, selected: each === state.kind }, words(each))));
  const about = make("input", { type: "search", "aria-label": "Find in the findings, by group, topic or words", placeholder: "Group, topic or words", value: state.about, autocomplete: "off", spellcheck: "false" });
  kind.addEventListener("change", () => ((state.kind = kind.value), show(true)));
  about.addEventListener("input", () => ((state.about = about.value), show(true)));

  const isChosen = () => state.levels.size > 0 || state.kind !== "" || state.about !== "";
  const show = (isChange = false) => {
    const sought = state.about.toLowerCase();
    const texts = (each) => [each.title, each.problem, each.impact, ...each.group_ids, ...each.topics, ...each.transactional_ids];
    const left = findings.filter(
      (each) => (!state.levels.size || state.levels.has(each.level)) && (!state.kind || each.kind === state.kind) && (!sought || texts(each).some((text) => text.toLowerCase().includes(sought)))
    );
    count.textContent = left.length === findings.length ? plural(findings.length, "finding") : `${number(left.length)} of ${plural(findings.length, "finding")}`;
    place.replaceChildren(left.length ? (isChosen() ? findingList(left) : incidentsAndNotes(left)) : make("p", { class: "fine" }, "No finding is like that."));
    if (isChange) {
      const pairs = [...[...state.levels].map((level) => ["level", level]), ...(state.kind ? [["kind", state.kind]] : []), ...(state.about ? [["about", state.about]] : [])];
      history.replaceState(null, "", pairs.length ? addressOf(pairs) : "#");
    }
  };
  show();
  return section("findings", "Findings", make("div", { class: "row-tools" }, make("div", { class: "chips", role: "group", "aria-label": "Levels" }, chips), kind, about, count), place);
};
