// What pages of the theme lack for keyboards and screen readers: tables that scroll can be reached, and what belongs to
// a block of code says to which. The theme adds both while it starts.
addEventListener("load", () => {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    table.tabIndex = 0;
  }
  document.querySelectorAll(".md-code__nav").forEach((buttons, at) => buttons.setAttribute("aria-label", `Code block ${at + 1}`));
});
