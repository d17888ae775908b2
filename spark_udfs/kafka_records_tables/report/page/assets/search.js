// The field at the top: finds names anywhere in the report while somebody types.

const FOUND_AT_ONCE = 8;
const SOUGHT = [
  ["group_id", "Groups", (text) => addressOf([["group", text]])],
  ["topic", "Topics", (text) => addressOf([["topic", text]])],
  ["transactional_id", "Transactional ids", (text) => tableAddress("transactions", [conditionFor("transactional_id", text)])],
  ["client_id", "Clients", (text) => tableAddress("members", [conditionFor("client_id", text)])],
];

const lowered = once(async (name) => (await dictionary(name)).map((text) => text.toLowerCase()));

/** The places of texts that hold what is sought: those that begin with it first. */
const placesFound = (texts, sought) => {
  const [begin, within] = [[], []];
  texts.forEach((text, place) => {
    const at = text.indexOf(sought);
    if (at === 0) begin.push(place);
    else if (at > 0) within.push(place);
  });
  return [...begin, ...within];
};

const readySearch = () => {
  const field = document.getElementById("find");
  const box = document.getElementById("found");
  let asked = 0;
  const close = () => {
    box.hidden = true;
    box.replaceChildren();
  };
  const search = async () => {
    const sought = field.value.trim().toLowerCase();
    const mine = ++asked;
    if (!sought) return close();
    const parts = [];
    let all = 0;
    for (const [name, title, address] of SOUGHT) {
      const found = placesFound(await lowered(name), sought);
      if (mine !== asked) return;
      all += found.length;
      const texts = await dictionary(name);
      if (found.length)
        parts.push(
          make("h2", {}, title, " ", dimmed(number(found.length))),
          make("ul", {}, found.slice(0, FOUND_AT_ONCE).map((place) => make("li", {}, make("a", { href: address(texts[place]) }, shown(texts[place])))))
        );
    }
    const title = report.document.findings.filter((each) => each.title.toLowerCase().includes(sought)).length;
    if (title) parts.push(make("h2", {}, "Findings ", dimmed(number(title))), make("ul", {}, make("li", {}, make("a", { href: addressOf([["about", field.value.trim()]]) }, "show these findings"))));
    all += title;
    box.replaceChildren(...(parts.length ? parts : [make("p", { class: "dim" }, "Nothing is called so.")]));
    box.hidden = false;
    say(all ? `${plural(all, "name")} found` : "nothing found");
  };
  field.addEventListener("input", search);
  field.addEventListener("focus", search);
  box.addEventListener("click", (event) => event.target.closest("a") && ((field.value = ""), close()));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !box.hidden) {
      close();
      field.focus();
      close();
    }
    if (event.key === "/" && !event.target.closest("input, textarea, select") && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      field.focus();
    }
    if (event.key === "ArrowDown" && event.target === field) box.querySelector("a")?.focus();
  });
  document.addEventListener("click", (event) => event.target.closest(".find") || close());
  document.querySelector(".find").addEventListener("focusout", (event) => event.relatedTarget && !event.relatedTarget.closest(".find") && close());
};
