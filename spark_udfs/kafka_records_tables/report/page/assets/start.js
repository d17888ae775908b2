// Opens the report, and shows what the address asks for.

const PARTS = [["findings", "Findings"], ["numbers", "Numbers"], ["groups", "Groups"], ["activity", "Activity"], ["topics", "Topics"], ["tables", "Tables"]];
let showing = 0;

const readyTheme = () => {
  const button = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  const names = { auto: "as the system", light: "light", dark: "dark" };
  let theme = "auto";
  try {
    theme = localStorage.getItem("kafka-records-theme") ?? "auto";
  } catch {
    // Some browsers keep nothing for pages that were opened from a file.
  }
  const show = () => {
    document.documentElement.dataset.theme = theme;
    button.textContent = { auto: "◐", light: "○", dark: "●" }[theme];
    button.setAttribute("aria-label", `Colours: ${names[theme]}. Change`);
    button.title = `Colours: ${names[theme]}`;
    redrawPlots();
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try {
      localStorage.setItem("kafka-records-theme", theme);
    } catch {
      // As above.
    }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawPlots);
  if (!themes.includes(theme)) theme = "auto";
  show();
};

/** What the address names: a group, a topic, a table, or a part of the first page. */
const pageOf = async (address) => {
  const chosen = new URLSearchParams(address.replaceAll("+", "%2B"));
  const named = (name, texts) => (chosen.has(`${name}-number`) ? texts[Number(chosen.get(`${name}-number`))] : chosen.get(name));
  const group = named("group", report.groupNames);
  if (group !== null && group !== undefined) return groupPage(group);
  const topic = named("topic", report.groupNames);
  if (topic !== null && topic !== undefined) return topicPage(topic);
  if (chosen.has("table")) return tablePage(chosen.get("table"), chosen);
  const page = await overview(chosen);
  page.at = PARTS.find(([id]) => address === id)?.[0] ?? (chosen.has("group-kind") || chosen.has("state") ? "groups" : null);
  page.isOverview = true;
  return page;
};

const show = async (isFirst = false) => {
  const mine = ++showing;
  const address = location.hash.slice(1);
  const main = document.getElementById("main");
  const current = PARTS.some(([id]) => id === address) && main.dataset.page === "overview" && document.getElementById(address);
  if (current) return goTo(current);
  const page = await pageOf(address);
  if (mine !== showing) return;
  document.title = page.isOverview ? "Kafka records report" : `${page.title} – Kafka records report`;
  main.dataset.page = page.isOverview ? "overview" : "details";
  main.replaceChildren(...page.parts.filter(Boolean));
  scrollTo(0, 0);
  if (!isFirst) main.querySelector("h1")?.focus();
  for (const part of page.later ?? []) {
    // Lets the browser draw what there is, and people click, between two parts.
    await new Promise((resolve) => setTimeout(resolve));
    const made = await part();
    if (mine !== showing) return;
    if (made) main.append(made);
  }
  if (page.at) goTo(document.getElementById(page.at));
  main.dataset.ready = "yes";
  document.documentElement.dataset.shown = String(mine);
};

const goTo = (part) => {
  part?.scrollIntoView();
  part?.querySelector("h2")?.focus({ preventScroll: true });
};

const open = async () => {
  report.document = JSON.parse(await textOf("document"));
  report.groupNames = await dictionary("group_id");
  report.groups = placesOf(report.groupNames);
  const { request } = report.document;
  document.getElementById("parts").replaceChildren(...PARTS.filter(([id]) => id !== "findings" || report.document.findings.length).map(([id, title]) => make("a", { href: `#${id}` }, title)));
  document.getElementById("foot").replaceChildren(make("p", {}, `Made by kafka-records ${request.version} (${request.engine} engine) at `, when(request.made_timestamp_ms), " UTC. Times are in UTC. This file holds all of its data, and loads nothing from a network."));
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  readySearch();
  addEventListener("hashchange", () => show());
  await show(true);
};

readyTheme();
open().catch((error) => {
  const main = document.getElementById("main");
  main.replaceChildren(make("h1", {}, "This report cannot be shown"), make("p", {}, `${error}`), make("p", {}, "It needs a browser of 2023 or later (DecompressionStream). The file may also be cut short: send or make it again."));
  throw error;
});
