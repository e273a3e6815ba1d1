"use strict";
(() => {
  const root = document.documentElement;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children); // text stays text: nothing is ever parsed as HTML
    return element;
  };

  // --- theme -------------------------------------------------------------------------------
  const remembered = () => { try { return localStorage.getItem("surefoot-theme"); } catch { return null; } };
  const remember = (theme) => { try { localStorage.setItem("surefoot-theme", theme); } catch { /* file:// */ } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const toggle = document.getElementById("theme");
  const setTheme = (theme) => {
    root.dataset.theme = theme;
    toggle.textContent = theme === "dark" ? "Light" : "Dark";
    toggle.setAttribute("aria-label", `switch to the ${theme === "dark" ? "light" : "dark"} theme`);
    plots.forEach((plot) => plot.drawn && plot.draw());
  };

  // --- plots -------------------------------------------------------------------------------
  const plots = [];
  const CONFIG = {
    responsive: true, displaylogo: false, displayModeBar: "hover", showSendToCloud: false, showEditInChartStudio: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  const merge = (base, own) => {
    const made = { ...base };
    for (const [key, value] of Object.entries(own || {})) {
      const nested = value && typeof value === "object" && !Array.isArray(value);
      made[key] = nested && made[key] && typeof made[key] === "object" ? merge(made[key], value) : value;
    }
    return made;
  };
  const axis = () => ({
    gridcolor: css("--grid"), zerolinecolor: css("--line"), linecolor: css("--line"),
    automargin: true, title: { standoff: 8, font: { size: 12 } }, tickfont: { size: 11 },
  });
  const houseLayout = (own, height) => merge({
    height, autosize: true, showlegend: false, hovermode: "closest",
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom", // a finger scrolls
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif', size: 12, color: css("--fg") },
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--fg") } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--quiet"), activecolor: css("--accent") },
    margin: { l: 56, r: 12, t: 26, b: 44 }, xaxis: axis(), yaxis: axis(),
  }, own);
  // Black is the ink of the page: on a dark one it is light.
  const inked = (value) => JSON.parse(JSON.stringify(value)
    .replaceAll('"#000000"', JSON.stringify(css("--fg")))
    .replaceAll('"#000000/quiet"', JSON.stringify(css("--quiet"))));

  class Plot {
    constructor(div, height) {
      Object.assign(this, { div, height, drawn: false, hidden: new Set(), data: [], layout: {} });
      div.style.height = `${height}px`;
      plots.push(this);
      near.observe(div);
    }
    show(data, layout) {
      this.data = data; this.layout = layout;
      if (this.drawn) this.draw();
    }
    draw() {
      this.drawn = true;
      const data = inked(this.data);
      data.forEach((trace) => { if (this.hidden.has(trace.legendgroup)) trace.visible = false; });
      return Plotly.react(this.div, data, houseLayout(inked(this.layout), this.height), CONFIG);
    }
  }
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const plot = entry.isIntersecting && plots.find((each) => each.div === entry.target);
      if (plot && !plot.drawn) plot.draw();
    }
  }, { rootMargin: "700px" });
  const undrawn = () => plots.filter((plot) => !plot.drawn && plot.div.isConnected);
  const drawAll = async () => { for (const plot of undrawn()) await plot.draw(); };
  addEventListener("beforeprint", () => undrawn().forEach((plot) => plot.draw())); // it does not wait

  // --- legends -----------------------------------------------------------------------------
  const SHAPES = {
    circle: "M18 7m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", square: "M14.5 3.5h7v7h-7z",
    "triangle-up": "M18 2.5l4.6 8h-9.2z", "triangle-down": "M18 11.5l4.6 -8h-9.2z",
    diamond: "M18 2l5 5l-5 5l-5 -5z", cross: "M16.4 2.5h3.2v3h3v3h-3v3h-3.2v-3h-3v-3h3z",
    x: "M14 4.4l1.6 -1.6l2.4 2.4l2.4 -2.4l1.6 1.6l-2.4 2.6l2.4 2.6l-1.6 1.6l-2.4 -2.4l-2.4 2.4l-1.6 -1.6l2.4 -2.6z",
    star: "M18 1.8l1.6 3.6l3.9 .4l-2.9 2.6l.8 3.8l-3.4 -2l-3.4 2l.8 -3.8l-2.9 -2.6l3.9 -.4z",
    area: "M2 2h32v10h-32z", box: "M2 1h32v12h-32z",
  };
  const DASHES = { solid: "", dash: "9 5", dashdot: "9 4 2 4", dot: "3 3" };
  const swatch = (key) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [name, value] of [["width", 36], ["height", 14], ["aria-hidden", "true"]]) svg.setAttribute(name, value);
    const color = key.color === "#000000" ? "currentColor" : key.color;
    const add = (d, attributes) => {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      for (const [name, value] of Object.entries({ d, ...attributes })) path.setAttribute(name, value);
      svg.append(path);
    };
    if (key.dash) {
      const dashes = DASHES[key.dash] ?? key.dash.replaceAll("px", "").replaceAll(",", " ");
      add("M0 7h36", { stroke: color, "stroke-width": 2, "stroke-dasharray": dashes, fill: "none" });
    }
    if (SHAPES[key.symbol]) add(SHAPES[key.symbol], { fill: color, opacity: key.symbol === "area" ? 0.45 : 1 });
    return svg;
  };
  const legend = (place, keys, of) => {
    const hidden = new Set();
    for (const key of keys) {
      const button = make("button", { class: "key", type: "button", "aria-pressed": "true", title: "show or hide" }, swatch(key), key.name);
      button.addEventListener("click", () => {
        const now = !hidden.has(key.name);
        now ? hidden.add(key.name) : hidden.delete(key.name);
        button.setAttribute("aria-pressed", String(!now));
        for (const plot of of()) { plot.hidden = hidden; if (plot.drawn) plot.draw(); }
      });
      place.append(button);
    }
    return hidden;
  };

  // --- charts ------------------------------------------------------------------------------
  const chart = (figure) => {
    const spec = read(`data-${figure.id}`);
    const place = figure.querySelector(".panels");
    place.style.setProperty("--panel", `${spec.width}px`);
    let own = [];
    const hidden = legend(figure.querySelector(".legend"), spec.legend, () => own);
    const show = (name) => {
      own.forEach((plot) => { near.unobserve(plot.div); plots.splice(plots.indexOf(plot), 1); Plotly.purge(plot.div); });
      place.replaceChildren();
      own = spec.variants[name].map((panel) => {
        const div = make("div", { class: "plot" });
        const box = make("div", { class: "panel" });
        if (panel.title) box.append(make("h4", {}, panel.title));
        box.append(div);
        place.append(box);
        const plot = new Plot(div, panel.height);
        plot.hidden = hidden;
        plot.show(panel.data, panel.layout);
        return plot;
      });
    };
    const names = Object.keys(spec.variants);
    if (names.length > 1) {
      const select = make("select", {}, ...names.map((name) => make("option", { value: name }, name)));
      select.addEventListener("change", () => show(select.value));
      figure.querySelector(".controls").append(make("label", {}, spec.choice, select));
    }
    show(names[0]);
  };

  // --- the explorer ------------------------------------------------------------------------
  const explorer = (figure) => {
    const spec = read(`data-${figure.id}`);
    const controls = figure.querySelector(".controls"), grid = figure.querySelector(".states");
    const words = figure.querySelector(".words"), body = figure.querySelector("tbody");
    const select = (label, names) => {
      const box = make("select", { "data-of": label }, ...names.map((name) => make("option", { value: name }, name)));
      if (names.length !== 1) controls.append(make("label", {}, label, box)); // one is no choice
      return box;
    };
    const check = (label, of) => {
      const box = make("input", { type: "checkbox", "data-of": of });
      box.checked = true;
      controls.append(make("label", {}, box, label));
      return box;
    };
    const which = select(spec.choice, Object.keys(spec.learned));
    const who = select("decide by", []);
    const zoom = check("zoom to the best actions", "zoom");
    const relative = check("F⁻² relative to the chosen action", "relative");
    const panels = [...figure.querySelectorAll(".plot")].map((div) => new Plot(div, 320));
    let state = spec.start;
    const buttons = spec.places.map((place, index) => {
      const button = make("button", { type: "button", class: place.mark, "data-state": index, tabindex: -1 });
      button.addEventListener("click", () => choose(index));
      grid.append(button);
      return button;
    });
    if (spec.columns) {
      grid.style.gridTemplateColumns = `repeat(${spec.columns}, minmax(0, 1fr))`;
      grid.style.maxWidth = `${72 * spec.columns}px`;
    } else grid.classList.add("flow");
    grid.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -(spec.columns || 1), ArrowDown: spec.columns || 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      let next = Number(document.activeElement.dataset.state) + step;
      while (buttons[next] && buttons[next].disabled) next += step;
      if (buttons[next]) { choose(next); buttons[next].focus(); }
    });
    legend(figure.querySelector(".legend"), spec.styles.map((style, a) => ({ ...style, name: spec.actions[a] })), () => panels);

    const decisions = () => spec.learned[which.value].decisions[who.value];
    const fillPolicies = () => {
      const before = who.value, names = Object.keys(spec.learned[which.value].decisions);
      who.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
      // Each table is first shown as its own policy sees it; a choice made by hand is kept.
      who.value = who.dataset.chosen && names.includes(before) ? before : names[0];
    };
    const mark = () => {
      buttons.forEach((button, index) => {
        const place = spec.places[index], decided = decisions()[index];
        const tag = { start: "S", goal: "G" }[place.mark] || "";
        button.disabled = !decided;
        button.className = `${place.mark} ${decided ? `by-${decided[1]}` : ""}`;
        button.setAttribute("aria-pressed", String(index === state));
        button.tabIndex = index === state ? 0 : -1;
        const action = decided ? spec.actions[decided[0]] : "";
        const why = decided ? `: ${action}, by ${spec.who[decided[1]]}` : `: ${place.mark || "nothing learned here"}`;
        button.setAttribute("aria-label", place.label + why);
        button.title = place.label + why;
        const shown = spec.columns ? (decided ? spec.arrows[decided[0]] : "") : place.text;
        button.replaceChildren(make("span", { class: "mark" }, shown || (tag && !decided ? tag : "")));
        if (tag && decided) button.append(make("span", { class: "tag" }, tag));
      });
    };
    const focused = (numbers, [action, , tied]) => {
      const all = spec.actions.map((_, a) => a);
      if (!zoom.checked) return all;
      if (tied.length > 1) return all.filter((a) => tied.includes(a) || a === action);
      const best = [...all].sort((a, b) => numbers.mean[b] - numbers.mean[a]).slice(0, 2);
      return all.filter((a) => best.includes(a) || a === action);
    };
    const trace = (a, x, y, more = {}) => {
      const style = spec.styles[a], name = spec.actions[a];
      const line = { color: style.color, dash: style.dash, width: 2, ...(more.line || {}) };
      return {
        type: "scatter", mode: "lines+markers", x, y, legendgroup: name,
        marker: { color: style.color, symbol: style.symbol, size: 7, maxdisplayed: 8 },
        hovertemplate: `%{x:.7g}, %{y:.6g}<extra>${escaped(name)}</extra>`, ...more, line,
      };
    };
    const draw = () => {
      const numbers = spec.learned[which.value].states[state], decision = decisions()[state];
      const actions = focused(numbers, decision), [action] = decision;
      const values = actions.flatMap((a) => numbers.z[a]);
      const low = Math.min(...values), high = Math.max(...values);
      const air = 0.08 * (high - low) || 0.01 * Math.max(Math.abs(high), 1e-6);
      const range = [low - air, high + air];
      const axes = (x, y, more = {}) => ({ xaxis: { title: { text: x } }, yaxis: { title: { text: y } }, ...more });
      panels[0].show(actions.map((a) => {
        const z = numbers.z[a], n = z.length;
        const x = [range[0], ...z, range[1]], y = [0, ...z.map((_, i) => (i + 1) / n), 1];
        return trace(a, x, y, { line: { shape: "hv" } });
      }), axes(spec.unit, "share of outcomes ≤ x", { xaxis: { title: { text: spec.unit + " x" }, range, tickangle: 0, nticks: 5 } }));
      const tau = (n) => [...Array(n + 1).keys()].map((i) => i / n);
      const curve = (a) => [0, ...numbers.curve[a]];
      const base = curve(action);
      panels[1].show(actions.map((a) => {
        const own = curve(a);
        return trace(a, tau(own.length - 1), relative.checked ? own.map((v, i) => v - base[i]) : own);
      }), axes("quantile level τ, worst first", relative.checked ? "F⁻²(τ) minus the chosen action's" : "F⁻²(τ), in units of " + spec.unit));
      panels[2].show(actions.flatMap((a) => {
        const z = numbers.z[a], mean = numbers.mean[a];
        const x = [range[0], ...z, range[1]], y = [0, ...numbers.frontier[a], range[1] - mean];
        const floor = [[range[1], range[1] - mean], [mean, 0], [range[0], 0]];
        const fill = trace(a, [...x, ...floor.map((p) => p[0])], [...y, ...floor.map((p) => p[1])], {
          mode: "lines", fill: "toself", fillcolor: spec.styles[a].fill, hoverinfo: "skip", hovertemplate: null, line: { width: 0 } });
        const rest = trace(a, floor.map((p) => p[0]), floor.map((p) => p[1]), {
          mode: "lines", hoverinfo: "skip", hovertemplate: null, line: { dash: "dot", width: 1, color: "#000000/quiet" } });
        return [fill, rest, trace(a, x, y)];
      }), axes(spec.unit, "", { xaxis: { title: { text: spec.unit + " α" }, range, tickangle: 0, nticks: 5 }, yaxis: { title: { text: "F⁽²⁾(α), shortfall below α" } } }));
      figure.querySelectorAll(".legend .key").forEach((key, a) => key.classList.toggle("away", !actions.includes(a)));
      words.replaceChildren(...decision[3].map((i) => make("p", {}, spec.sentences[i])));
      body.replaceChildren(...spec.actions.map((name, a) => {
        const cells = [numbers.mean[a], numbers.std[a], ...numbers.cvar[a]];
        const row = make("tr", { class: a === action ? "chosen" : null }, make("td", { "data-label": "action" }, (a === action ? "→ " : "") + name));
        cells.forEach((value, i) => row.append(make("td", { "data-label": spec.header[i + 1] }, format(value))));
        return row;
      }));
      figure.querySelector(".where").textContent = spec.places[state].label;
    };
    const choose = (index) => {
      if (!decisions()[index]) return;
      state = index;
      mark(); draw();
    };
    const refresh = () => {
      fillPolicies();
      if (!decisions()[state]) state = Number(Object.keys(decisions())[0]);
      mark(); draw();
    };
    which.addEventListener("change", refresh);
    who.addEventListener("change", () => { who.dataset.chosen = "1"; mark(); draw(); });
    [zoom, relative].forEach((box) => box.addEventListener("change", draw));
    refresh();
  };
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const format = (value) => value === null ? "" : Number(value.toPrecision(6)).toString();

  setTheme(remembered() || (system.matches ? "dark" : "light"));
  system.addEventListener("change", (event) => { if (!remembered()) setTheme(event.matches ? "dark" : "light"); });
  toggle.addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    remember(theme);
    setTheme(theme);
  });
  toggle.hidden = false;
  document.querySelectorAll("figure.chart").forEach(chart);
  document.querySelectorAll("figure.explorer").forEach(explorer);
  window.surefoot = { drawAll };
  document.body.dataset.ready = "yes";
})();
