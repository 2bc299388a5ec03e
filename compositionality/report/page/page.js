"use strict";
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  // Theme and filters are in the query of the URL: reloaded or shared, the page shows the same. A value that is no
  // choice is ignored. A choice replaces the history's entry, so that it adds no step to go back.
  const query = () => new URL(location.href).searchParams;
  const keep = (changes) => {
    const url = new URL(location.href);
    Object.entries(changes).forEach(([key, value]) => (value ? url.searchParams.set(key, value) : url.searchParams.delete(key)));
    try {
      history.replaceState(null, "", url);
    } catch {
      // Refused in a document without a URL of its own (a sandboxed frame): the page works, its URL stays.
    }
  };
  const readers = [() => {
    const theme = query().get("theme");
    if (["light", "dark"].includes(theme)) root.dataset.theme = theme;
    else delete root.dataset.theme;
  }];
  const read = () => readers.forEach((one) => one());
  read();
  window.addEventListener("popstate", read);
  document.getElementById("theme").addEventListener("click", () => {
    const now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    keep({ theme: root.dataset.theme });
  });
  // In print the page is light, and folded details are opened.
  let before = [];
  window.addEventListener("beforeprint", () => {
    before = [...document.querySelectorAll("details:not([open])")];
    before.forEach((one) => { one.open = true; });
  });
  window.addEventListener("afterprint", () => before.forEach((one) => { one.open = false; }));

  // Figures are specifications of Vega-Lite. They and the library are unpacked here; the page's rules forbid eval, so that
  // expressions are interpreted (ast). Colours of text and lines follow the theme by the style sheet.
  const unpacked = async (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  // As many panels in a line as fit, each as wide as the line allows, at most a quarter wider than it was made.
  const fitted = (spec, width) => {
    const made = structuredClone(spec), panels = made.concat || [made.spec || made];
    const { margin = 60 } = made.usermeta || {}, each = made.concat ? margin : 0, gap = 20;
    const line = width - (made.concat ? 0 : margin), least = 0.8 * panels[0].width + each + gap;
    const columns = Math.max(1, Math.min(made.columns || 1, Math.floor((line + gap) / least)));
    if (made.columns) made.columns = columns;
    const room = Math.floor((line - gap * (columns - 1)) / columns) - each;
    panels.forEach((panel) => { panel.width = Math.min(Math.round(1.25 * panel.width), room); });
    made.config.legend.columns = Math.max(1, Math.floor(width / 175));
    return made;
  };
  const draw = async () => {
    const library = document.createElement("script");
    library.textContent = await unpacked("vega");
    document.head.append(library);
    const specs = JSON.parse(await unpacked("specs")), drawn = new Map();
    const all = async () => {
      for (const place of document.querySelectorAll("[data-figure]")) {
        const style = getComputedStyle(place), width = place.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        if (drawn.get(place) === width) continue;
        drawn.set(place, width);
        const inside = document.createElement("div");  // Vega gives it a role; the frame keeps the figure's name
        place.replaceChildren(inside);
        await vegaEmbed(inside, fitted(specs[place.dataset.figure], width), { ast: true, renderer: "svg", actions: false });
      }
    };
    await all();
    root.dataset.drawn = "yes";
    window.addEventListener("resize", all);
  };
  draw();

  const source = document.getElementById("sample-data");
  if (!source) return;
  const samples = JSON.parse(source.textContent);
  const titles = JSON.parse(document.getElementById("group-titles").textContent);
  const [form, list, count, more] = ["filters", "sample-list", "sample-count", "more"].map((id) => document.getElementById(id));
  const PAGE = 6;
  let limit = PAGE;

  // Text from models and files goes in as text only, never as HTML.
  const element = (tag, text, kind) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const fields = { model: "model", group: "group", level: "level", reason: "verdict" };
  const words = (key, value) => (key === "group" ? titles[value] || value : String(value).replaceAll("_", " "));
  for (const [key, title] of Object.entries(fields)) {
    const label = element("label", title);
    const select = element("select");
    select.name = key;
    select.append(new Option("all", ""));
    const values = [...new Set(samples.map((one) => one[key]))];
    if (key === "level") values.sort((a, b) => a - b);
    values.forEach((value) => select.append(new Option(words(key, value), value)));
    select.addEventListener("change", () => { keep({ [key]: select.value }); limit = PAGE; show(); });
    label.append(select);
    form.append(label);
  }
  const block = (title, text) => {
    const part = element("div", undefined, "block");
    part.append(element("h4", title), element("pre", text));
    return part;
  };
  const card = (one) => {
    const made = element("article", undefined, "sample");
    made.setAttribute("aria-label", `${one.model}, ${words("group", one.group)}, level ${one.level}, problem ${one.problem}: ${words("reason", one.reason)}`);
    const right = one.reason === "correct";
    const head = element("p", undefined, "sample-head");
    head.append(
      element("span", `${right ? "✓" : "✗"} ${words("reason", one.reason)}`, `badge ${right ? "supported" : "contradicted"}`),
      element("span", `${one.model} · ${words("group", one.group)} · level ${one.level} · problem ${one.problem} · ${one.tokens} tokens${one.finish === "length" ? ", cut off" : ""}`, "small"),
    );
    const answer = element("p", undefined, "answer");
    answer.append("answer read by the judge: ", element("code", one.answer || "none"));
    made.append(head, block("Prompt", one.prompt), block("Completion", one.response), answer, block("Gold completion", one.gold));
    return made;
  };
  const show = () => {
    const chosen = Object.fromEntries(new FormData(form));
    const found = samples.filter((one) => Object.keys(fields).every((key) => !chosen[key] || String(one[key]) === chosen[key]));
    list.replaceChildren(...found.slice(0, limit).map(card));
    count.textContent = `${Math.min(limit, found.length)} of ${found.length} shown`;
    more.hidden = found.length <= limit;
  };
  more.addEventListener("click", () => { limit += 4 * PAGE; show(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  readers.push(() => {
    for (const select of form.querySelectorAll("select")) {
      const wanted = query().get(select.name) || "";
      select.value = [...select.options].some((one) => one.value === wanted) ? wanted : "";
    }
    limit = PAGE;
    show();
  });
  read();
})();
