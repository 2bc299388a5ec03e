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
  // As many panels in a line as fit, each as wide as the line allows, at most a quarter wider than it was made. Names beside
  // the lines of a chart take room: where it is narrow, it has a legend in their place.
  const isLabel = ({ name = "" }) => name.startsWith("label-");
  const fitted = (spec, width) => {
    const made = structuredClone(spec), panels = made.concat || [made.spec || made];
    const narrow = made.layer?.some(isLabel) && width < 600;
    if (narrow) {
      made.layer = made.layer.filter((layer) => !isLabel(layer));
      made.layer.forEach(({ encoding: { color } }) => delete color.legend);
    }
    const margin = (!narrow && made.usermeta?.margin) || 60, each = made.concat ? margin : 0, gap = 20;
    const line = width - (made.concat ? 0 : margin), least = 0.8 * panels[0].width + each + gap;
    const columns = Math.max(1, Math.min(made.columns || 1, Math.floor((line + gap) / least)));
    if (made.columns) made.columns = columns;
    const room = Math.floor((line - gap * (columns - 1)) / columns) - each;
    panels.forEach((panel) => { panel.width = Math.min(Math.round(1.25 * panel.width), room); });
    made.config.legend.columns = Math.max(1, Math.floor(width / 175));
    return made;
  };
  let specs = {};
  const drawn = new Map(), onDrawn = {};
  const drawOne = async (place) => {
    const style = getComputedStyle(place), width = place.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    if (width <= 0 || drawn.get(place) === width) return;  // no room: in a window being closed
    drawn.set(place, width);
    const inside = element("div");  // Vega gives it a role; the frame keeps the figure's name
    place.replaceChildren(inside);
    const { view } = await vegaEmbed(inside, fitted(specs[place.dataset.figure], width), { ast: true, renderer: "svg", actions: false });
    onDrawn[place.dataset.figure]?.(view);
  };
  // A figure as PNG, light and as it is now, or its rows as CSV, from what the page holds: it may be a copy without its folder.
  const save = async (file, tables) => {
    const [name, ending] = file.split("."), link = element("a");
    link.download = file;
    if (ending === "csv") link.href = URL.createObjectURL(new Blob([tables[name]], { type: "text/csv" }));
    else {
      const spec = { ...fitted(specs[name], 1100), background: "white" };
      const { view } = await vegaEmbed(element("div"), spec, { ast: true, actions: false });
      link.href = await view.toImageURL("png", 2);
    }
    link.click();
  };
  const draw = async () => {
    const library = element("script", await unpacked("vega"));
    document.head.append(library);
    specs = JSON.parse(await unpacked("specs"));
    const tables = JSON.parse(await unpacked("tables"));
    const explored = JSON.parse(await unpacked("explorer"));
    if (explored.replicates) exploreDots(explored);
    if (explored.runs.length) exploreSteps(explored.runs);
    if (explored.scaling.points) exploreRuns(explored.scaling);
    const all = async () => { for (const place of document.querySelectorAll("[data-figure]")) await drawOne(place); };
    await all();
    document.querySelectorAll(".save").forEach((one) => one.addEventListener("click", () => save(one.dataset.save, tables)));
    root.dataset.drawn = "yes";
    window.addEventListener("resize", all);
  };

  // Text from models and files goes in as text only, never as HTML.
  const element = (tag, text, kind) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const block = (title, text) => {
    const part = element("div", undefined, "block");
    part.append(element("h4", title), element("pre", text));
    return part;
  };
  const badge = (right, text) => element("span", `${right ? "✓" : "✗"} ${text}`, `badge ${right ? "supported" : "contradicted"}`);
  // An answer, its lines marked where the gold solution has several, or both have one: the same line there, or not.
  const marked = (text, gold) => {
    const part = element("pre"), lines = text.trim().split("\n"), wanted = gold.trim().split("\n");
    const comparable = wanted.length > 1 || lines.length === 1;
    lines.forEach((line, place) => {
      const right = line.trim() === wanted[place]?.trim();
      part.append(comparable ? element("span", `${right ? "✓" : "✗"} ${line}\n`, right ? "line-right" : "line-wrong") : `${line}\n`);
    });
    return part;
  };
  const menu = (form, name, title, options, changed) => {
    const label = element("label", title), select = element("select");
    select.name = name;
    options.forEach(([words, value]) => select.append(new Option(words, value)));
    select.addEventListener("change", changed);
    label.append(select);
    form.append(label);
    return select;
  };
  const refill = (select, options) => {
    select.replaceChildren(...options.map(([words, value]) => new Option(words, value)));
  };

  // The dots of a replicate, and the problem of the dot that is chosen: by a click, or by the menus.
  const exploreDots = ({ models, words, replicates, first, figure: chart, exact }) => {
    const [form, shown, figure] = ["dots", "dot-problem", `${chart}-drawing`].map((id) => document.getElementById(id));
    const [key] = Object.keys(specs[chart].datasets);
    const usual = replicates.find(({ name }) => name === first) || replicates[0];
    let view = null, now = usual;
    const placed = (p) => (exact ? Math.max(1e-16, 10 ** (p / 100)) : p / 100);
    const written = (p) => (p === null || p === undefined ? "P unknown" : p < -30000 ? `P = 10^${Math.round(p / 100)}` : `P = ${(10 ** (p / 100)).toPrecision(2)}`);
    const withAnswers = (texts) => replicates.length > 1 && Object.values(texts).some(({ answers }) => answers.some((one) => one !== null));
    const fill = () => {
      const rows = [];
      models.forEach(({ panel, title, start }, model) => now.level.forEach((level, at) => {
        const [before, after] = [now.p[start]?.[at], now.p[model][at]];
        if (!panel || before === null || after === null) return;
        rows.push({ panel, arm: title, level, name: `level ${level}`, problem: now.problem[at], at,
          before: placed(before), after: placed(after) });
      }));
      specs[chart].datasets[key] = rows;
      drawn.delete(figure);
    };
    const called = (words, at) => (now.cluster[at] ? `${words}: ${now.cluster[at]}` : words);
    const places = (level) => now.level.flatMap((one, at) => (String(one) === level ? [[called(now.problem[at], at), at]] : []));
    const choose = (at) => {
      view?.signal("picked", at).runAsync();
      keep({ replicate: now === usual ? "" : now.name, dot: at < 0 ? "" : String(at) });
      if (at < 0) return shown.replaceChildren(element("p", "Click a dot, or choose a problem in the menus.", "small"));
      if (level.value !== String(now.level[at])) { level.value = now.level[at]; refill(problem, [["–", -1], ...places(level.value)]); }
      problem.value = at;
      const text = now.texts[at], cards = element("div", undefined, "answers");
      models.forEach(({ title }, model) => {
        const made = element("article", undefined, "sample"), head = element("p", undefined, "sample-head"), said = words[now.code[model][at]];
        head.append(element("strong", title), said ? badge(/^right|^(\d+) of \1 right/.test(said), said) : "not asked");
        if (exact) head.append(element("span", written(now.p[model][at]), "small"));
        made.append(head);
        made.setAttribute("aria-label", `${title}: ${said || "not asked"}`);
        if (text && text.answers[model] !== null) made.append(marked(text.answers[model], text.gold));
        cards.append(made);
      });
      const asked = element("div", undefined, "question");
      if (text) asked.append(block("Prompt", text.prompt), block("Gold solution", text.gold));
      shown.replaceChildren(element("h4", called(`Level ${now.level[at]}, problem ${now.problem[at]} of ${now.name}`, at)), asked, cards);
    };
    const turn = async (name) => {
      now = replicates.find((one) => one.name === name) || usual;
      replicate.value = now.name;
      fill();
      const asked = level.value, levels = [...new Set(now.level)].map(String);
      refill(level, levels.map((one) => [one, one]));
      if (levels.includes(asked)) level.value = asked;
      refill(problem, [["–", -1], ...places(level.value)]);
    };
    const replicate = menu(form, "dots-replicate", "replicate", replicates.map(({ name, texts }) => [withAnswers(texts) ? `${name}, with the answers’ texts` : name, name]), async () => { turn(replicate.value); choose(-1); await drawOne(figure); });
    const level = menu(form, "dots-level", "level", [], () => { refill(problem, [["–", -1], ...places(level.value)]); choose(-1); });
    const problem = menu(form, "dots-problem", "problem", [], () => choose(Number(problem.value)));
    form.addEventListener("submit", (event) => event.preventDefault());
    onDrawn[chart] = (made) => {
      view = made;
      view.signal("picked", Number(problem.value)).runAsync();
      view.addEventListener("click", (event, item) => {
        if (item?.datum?.at === undefined) return;
        choose(item.datum.at);
        shown.scrollIntoView({ block: "nearest" });  // it is below the dots, out of sight on most screens
      });
    };
    const wanted = query(), dot = Number(wanted.get("dot") ?? -1);
    turn(wanted.get("replicate"));
    choose(Number.isInteger(dot) && dot < now.level.length ? dot : -1);
  };

  // The runs that a dot of the scaling laws is the mean of: chosen by a click, or by the menus.
  const exploreRuns = ({ figure, points }) => {
    const [form, shown] = ["points", "point-runs"].map((id) => document.getElementById(id));
    const steps = () => [...new Set(points.filter(([of]) => String(of) === size.value).map(([, step]) => step))].map((one) => [one, one]);
    const choose = () => {
      const runs = points.filter(([of, at]) => String(of) === size.value && String(at) === step.value);
      const titles = ["run", "FLOPs", "loss", "right answers"], wide = element("div", undefined, "wide"), table = element("table");
      const line = (cells, tag) => cells.reduce((row, cell, place) => {
        const made = element(tag, cell);
        made.dataset.title = titles[place];
        row.append(made);
        return row;
      }, element("tr"));
      const [head, body] = [table.createTHead(), table.createTBody()];
      head.append(line(titles, "th"));
      runs.forEach(([, , run, flops, loss]) => body.append(line([run, flops.toPrecision(3), loss.toFixed(4), `${(100 * (1 - loss)).toFixed(1)} %`], "td")));
      wide.append(table);
      shown.replaceChildren(element("h4", `The runs of ${Number(size.value).toLocaleString("en")} parameters at step ${step.value}`), wide);
    };
    const size = menu(form, "points-size", "parameters", [...new Set(points.map(([of]) => of))].map((one) => [one.toLocaleString("en"), one]), () => { refill(step, steps()); choose(); });
    const step = menu(form, "points-step", "step", steps(), choose);
    form.addEventListener("submit", (event) => event.preventDefault());
    onDrawn[figure] = (view) => view.addEventListener("click", (event, item) => {
      if (item?.mark.marktype !== "symbol" || item.datum.step === undefined) return;
      size.value = item.datum.size;
      refill(step, steps());
      step.value = item.datum.step;
      choose();
    });
    step.selectedIndex = step.options.length - 1;
    choose();
  };

  // One problem in the course of RL: a completion of each validation.
  const exploreSteps = (runs) => {
    const [form, slider, shown, strip] = ["steps-menus", "step", "step-shown", "step-strip"].map((id) => document.getElementById(id));
    const names = [...new Set(runs.map(({ run }) => run))];
    let now = runs[0];
    const show = () => {
      const one = now.steps[slider.value], of = now.of ? ` of ${now.of}` : "", last = now.steps.at(-1).step;
      const words = `step ${one.step}${of}`, head = element("p", undefined, "sample-head");
      slider.setAttribute("aria-valuetext", `${words}: ${one.right ? "right" : "wrong"}`);
      head.append(element("strong", words), badge(one.right, one.right ? "right" : "wrong"));
      if (now.of > last) head.append(element("span", `no later completion than of step ${last} yet`, "small"));
      shown.replaceChildren(head, marked(one.text, now.gold), block("Prompt", now.prompt), block("Gold solution", now.gold));
      [...strip.children].forEach((mark, place) => mark.classList.toggle("now", place === Number(slider.value)));
    };
    const choose = () => {
      now = runs[problem.value];
      slider.max = now.steps.length - 1;
      slider.value = slider.max;
      strip.replaceChildren(...now.steps.map(({ right }) => element("span", right ? "✓" : "✗", right ? "line-right" : "line-wrong")));
      show();
    };
    const of = () => runs.flatMap(({ run, source, problem: number }, place) => (run === arm.value ? [[`${source}, problem ${number}`, place]] : []));
    const arm = menu(form, "steps-run", "run", names.map((name) => [runs.find(({ run }) => run === name).title, name]), () => { refill(problem, of()); choose(); });
    const problem = menu(form, "steps-problem", "problem", of(), choose);
    slider.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    // The deepest problem of the last run that is learned in its course is shown first.
    const learned = runs.findLastIndex(({ steps }) => steps.at(-1).right && !steps[0].right);
    if (learned >= 0) {
      arm.value = runs[learned].run;
      refill(problem, of());
      problem.value = learned;
    }
    choose();
  };
  draw();

  const source = document.getElementById("sample-data");
  if (!source) return;
  const samples = JSON.parse(source.textContent);
  const titles = JSON.parse(document.getElementById("titles").textContent);
  const [form, list, count, more] = ["filters", "sample-list", "sample-count", "more"].map((id) => document.getElementById(id));
  const PAGE = 6;
  let limit = PAGE;

  const fields = { model: "model", group: "group", level: "level", reason: "verdict" };
  const words = (key, value) => titles[key]?.[value] || String(value).replaceAll("_", " ");
  for (const [key, title] of Object.entries(fields)) {
    const values = [...new Set(samples.map((one) => one[key]))];
    if (key === "level") values.sort((a, b) => a - b);
    const select = menu(form, key, title, [["all", ""], ...values.map((value) => [words(key, value), value])], () => { keep({ [key]: select.value }); limit = PAGE; show(); });
  }
  const card = (one) => {
    const made = element("article", undefined, "sample");
    made.setAttribute("aria-label", `${words("model", one.model)}, ${words("group", one.group)}, level ${one.level}, problem ${one.problem}: ${words("reason", one.reason)}`);
    const right = one.reason === "correct";
    const head = element("p", undefined, "sample-head");
    head.append(
      badge(right, words("reason", one.reason)),
      element("span", `${words("model", one.model)} · ${words("group", one.group)} · level ${one.level} · problem ${one.problem} · ${one.tokens} tokens${one.finish === "length" ? ", cut off" : ""}`, "small"),
    );
    const answer = element("p", undefined, "answer");
    answer.append("answer read by the judge: ", element("code", one.answer || "none"));
    made.append(head, block("Prompt", one.prompt), block("Completion", one.response), answer, block("Gold solution", one.gold));
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
