// Elements. Data reaches the page as text nodes and as the values of properties that take text, never as markup.

const make = (tag, properties = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
};

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Text in which controls, and marks that turn its direction or show nothing, are written out. */
const visible = (text) =>
  text.replace(UNSEEN, (mark) => `\\u{${mark.codePointAt(0).toString(16)}}`).replace(/[\t\n]/g, (mark) => (mark === "\n" ? "\\n" : "\\t"));

const CELL_LENGTH = 90;

/** A text of a record on one line, its direction its own, cut where it is long. */
const shown = (text, most = CELL_LENGTH) => {
  if (text === "") return make("span", { class: "dim" }, "(empty)");
  const head = [...text.slice(0, most * 2)].slice(0, most).join("");
  return make("bdi", {}, visible(head), head.length < text.length ? make("span", { class: "dim" }, "…") : null);
};

/** A text of a record as whole as one wants it: long ones are folded behind a button. */
const whole = (text, most = 400) => {
  if (text.length <= most) return shown(text, most);
  const rest = make("pre", { class: "whole", tabindex: "0", hidden: true });
  const open = make("button", { type: "button", class: "quiet" }, `show all ${number(text.length)} characters`);
  open.addEventListener("click", () => {
    rest.textContent = visible(text);
    rest.hidden = false;
    open.remove();
  });
  return make("div", {}, shown(text, most / 2), " ", open, " ", copyButton(text, "copy", "the whole text"), rest);
};

const copyButton = (text, word = "copy", what = "the command") => {
  const button = make("button", { type: "button", class: "copy", "aria-label": `${word} ${what}` }, word);
  button.addEventListener("click", async () => {
    await copied(text);
    button.textContent = "copied";
    say("copied");
    setTimeout(() => (button.textContent = word), 1500);
  });
  return button;
};

const copied = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers give no clipboard to some pages that were opened from a file.
    const field = make("textarea", { class: "unseen", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
};

const commandLine = (command) =>
  make(
    "div",
    { class: "command" },
    make("code", { tabindex: "0", role: "group", "aria-label": "Command" }, visible(command)),
    copyButton(command)
  );

const say = (text) => {
  const status = document.getElementById("find-said");
  status.textContent = "";
  requestAnimationFrame(() => (status.textContent = text));
};

/** A part that is folded, and filled when somebody opens it or prints the page. */
const folded = (summary, properties, contentOf) => {
  const part = make("details", properties, make("summary", {}, summary));
  let isFilled = false;
  part.fill = () => {
    if (!isFilled) part.append(...[contentOf()].flat(Infinity).filter(Boolean));
    isFilled = true;
  };
  part.addEventListener("toggle", () => part.open && part.fill());
  if (part.open) part.fill();
  return part;
};

/** What is folded is on paper too: nobody can open it there. */
addEventListener("beforeprint", () => {
  // What is filled may have folded parts of its own.
  for (let part; (part = document.querySelector("main details:not([open])")); ) {
    part.fill?.();
    part.dataset.unfolded = "";
    part.open = true;
  }
});
addEventListener("afterprint", () => {
  for (const part of document.querySelectorAll("details[data-unfolded]")) {
    part.open = false;
    delete part.dataset.unfolded;
  }
});

const section = (id, title, ...children) =>
  make("section", { id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title`, tabindex: "-1" }, title), ...children);

/** Text that a shell takes as one word; what would not be seen is written out, as bash, zsh and ksh read it. */
const quoted = (word) => {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  if (visible(word) === word) return `'${word.replaceAll("'", "'\\''")}'`;
  const octal = (mark) => [...new TextEncoder().encode(mark)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  return `$'${[...word].map((mark) => (mark === "'" || mark === "\\" || visible(mark) !== mark ? octal(mark) : mark)).join("")}'`;
};

/** The condition that a column has a text, as --where takes it. */
const conditionFor = (column, text) =>
  text === text.trim() && !["", "'", '"'].includes(text.slice(0, 1)) ? `${column}=${text}` : `${column}="${text}"`;

const LONGEST_LINK = 2000;

/** What stands behind # for a part of the report: pairs of a name and a text. A text that no address bears goes by its place. */
const addressOf = (pairs) =>
  "#" +
  pairs
    .map(([name, text]) => {
      const place = text.length > LONGEST_LINK ? report.groups.get(text) : undefined;
      return place === undefined ? `${name}=${encodeURIComponent(text.slice(0, 20_000))}` : `${name}-number=${place}`;
    })
    .join("&");

const groupLink = (group, most) => make("a", { href: addressOf([["group", group]]) }, shown(group, most));
const topicLink = (topic, most) => make("a", { href: addressOf([["topic", topic]]) }, shown(topic, most));
const tableAddress = (name, where = []) => addressOf([["table", name], ...where.map((each) => ["where", each])]);
