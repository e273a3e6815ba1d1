"use strict";
(() => {
  const root = document.documentElement;
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children); // text stays text: nothing is ever parsed as HTML
    return element;
  };
  const shape = (tag, attributes = {}, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // --- theme: the system's, until the button says otherwise ------------------------------
  const system = matchMedia("(prefers-color-scheme: dark)");
  const toggle = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const nameToggle = () => {
    toggle.textContent = isDark() ? "Light" : "Dark";
    toggle.setAttribute("aria-label", `switch to the ${isDark() ? "light" : "dark"} theme`);
  };
  toggle.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameToggle(); });
  system.addEventListener("change", nameToggle);
  nameToggle();
  toggle.hidden = false;

  // --- plots: lines, steps, areas and markers on two axes ---------------------------------
  const WIDTH = 400, HEIGHT = 300, LEFT = 76, RIGHT = 14, TOP = 12, BOTTOM = 46;
  const MARKERS = { // within four units of the middle
    o: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", s: "M-3.5 -3.5h7v7h-7z", "^": "M0 -4.5l4.5 8h-9z", v: "M0 4.5l4.5 -8h-9z",
    D: "M0 -5l5 5l-5 5l-5 -5z", P: "M-1.6 -4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
    X: "M-4 -2.4l1.6 -1.6l2.4 2.4l2.4 -2.4l1.6 1.6l-2.4 2.4l2.4 2.4l-1.6 1.6l-2.4 -2.4l-2.4 2.4l-1.6 -1.6l2.4 -2.4z",
    "*": "M0 -5.2l1.6 3.6l3.9 .4l-2.9 2.6l.8 3.8l-3.4 -2l-3.4 2l.8 -3.8l-2.9 -2.6l3.9 -.4z",
  };
  const ink = (style) => (style.color === "#000000" ? "currentColor" : style.color); // black is the page's ink
  const extent = (values) => [Math.min(...values), Math.max(...values)];
  const ticks = ([low, high], most) => {
    const raw = (high - low) / most, size = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * size).find((s) => s >= raw);
    const values = [];
    for (let i = Math.ceil(low / step); i * step <= high; i++) values.push(i * step);
    const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return values.map((value) => [value, places > 8 ? value.toPrecision(3) : value.toFixed(places).replace(/^-(0(\.0*)?)$/, "$1")]);
  };
  const plot = (place, label, series, { x: xLabel, y: yLabel, range }) => {
    const drawn = series.flatMap((s) => s.y.concat(s.floor || [])).filter(Number.isFinite);
    const xs = range || extent(series.flatMap((s) => s.x));
    let [low, high] = drawn.length ? extent(drawn) : [0, 1];
    const air = 0.05 * (high - low) || 0.05 * Math.abs(high) || 1;
    [low, high] = [low - air, high + air];
    const px = (v) => LEFT + (WIDTH - LEFT - RIGHT) * (v - xs[0]) / (xs[1] - xs[0] || 1);
    const py = (v) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (v - low) / (high - low);
    const at = (x, y) => `${px(x).toFixed(1)} ${py(y).toFixed(1)}`;
    const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
    for (const [value, text] of ticks(xs, 5)) {
      svg.append(shape("path", { class: "grid", d: `M${at(value, low)}L${at(value, high)}` }),
        shape("text", { x: px(value), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, text));
    }
    for (const [value, text] of ticks([low, high], 5)) {
      svg.append(shape("path", { class: "grid", d: `M${at(xs[0], value)}L${at(xs[1], value)}` }),
        shape("text", { x: LEFT - 6, y: py(value) + 4, "text-anchor": "end" }, text));
    }
    svg.append(
      shape("path", { class: "axis", d: `M${at(xs[0], high)}L${at(xs[0], low)}L${at(xs[1], low)}` }),
      shape("text", { class: "label", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, xLabel),
      shape("text", { class: "label", transform: `translate(13 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, yLabel),
    );
    for (const s of series) {
      const color = ink(s.style), group = shape("g", { class: "curve", "data-action": s.name, "data-y": JSON.stringify(s.y) }, shape("title", {}, s.name));
      const points = s.x.map((x, i) => (i && s.steps ? `${at(x, s.y[i - 1])}L` : "") + at(x, s.y[i]));
      if (s.floor) {
        const below = s.x.map((x, i) => at(x, s.floor[i]));
        group.append(shape("path", { d: `M${points.join("L")}L${[...below].reverse().join("L")}z`, fill: color, "fill-opacity": 0.22 }),
          shape("path", { class: "floor", d: `M${below.join("L")}` }));
      }
      group.append(shape("path", { d: `M${points.join("L")}`, fill: "none", stroke: color, "stroke-width": s.chosen ? 2.8 : 1.8, "stroke-dasharray": s.style.dash }));
      const every = Math.max(1, Math.ceil(s.x.length / 7));
      s.x.forEach((x, i) => {
        if (i % every === 0 && x >= xs[0] && x <= xs[1]) group.append(shape("path", { class: "mark", d: MARKERS[s.style.marker], fill: color, transform: `translate(${at(x, s.y[i])})` }));
      });
      svg.append(group);
    }
    place.replaceChildren(svg);
  };

  // --- the explorer: states to click on ----------------------------------------------------
  const explorer = (figure) => {
    const spec = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    const find = (selector) => figure.querySelector(selector);
    const controls = find(".controls"), grid = find(".states");
    const select = (label, names) => {
      const box = make("select", { "data-of": label }, ...names.map((name) => make("option", { value: name }, name)));
      if (names.length !== 1) controls.append(make("label", {}, label, box)); // one is no choice
      return box;
    };
    const check = (label, of) => {
      const box = make("input", { type: "checkbox", "data-of": of });
      box.checked = true;
      box.addEventListener("change", () => draw());
      controls.append(make("label", {}, box, label));
      return box;
    };
    const which = select(spec.choice, Object.keys(spec.learned)), who = select("decide by", []);
    const zoom = check("only the best actions", "zoom");
    const relative = check("F⁻² relative to the chosen action", "relative");
    const hidden = new Set();
    let state = spec.start;

    const buttons = spec.places.map((place, index) => {
      const button = make("button", { type: "button", "data-state": index });
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
      let next = state + step;
      while (buttons[next] && buttons[next].disabled) next += step;
      const across = spec.columns && Math.abs(step) === 1;
      if (across && Math.floor(next / spec.columns) !== Math.floor(state / spec.columns)) return; // the row ends
      if (buttons[next]) { choose(next); buttons[next].focus(); }
    });
    spec.actions.forEach((name, a) => {
      const style = spec.styles[a], color = ink(style);
      const key = shape("svg", { width: 36, height: 14, "aria-hidden": "true" },
        shape("path", { d: "M0 7h36", stroke: color, "stroke-width": 2, "stroke-dasharray": style.dash }),
        shape("path", { d: MARKERS[style.marker], fill: color, transform: "translate(18 7)" }));
      const button = make("button", { class: "key", type: "button", "aria-pressed": "true", title: "show or hide" }, key, name);
      button.addEventListener("click", () => {
        hidden.has(a) ? hidden.delete(a) : hidden.add(a);
        button.setAttribute("aria-pressed", String(!hidden.has(a)));
        draw();
      });
      find(".legend").append(button);
    });

    const decisions = () => spec.learned[which.value].decisions[who.value];
    const fillPolicies = () => {
      const before = who.value, names = Object.keys(spec.learned[which.value].decisions);
      who.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
      // Each table is first shown as its own policy sees it; a choice made by hand is kept.
      who.value = who.dataset.chosen && names.includes(before) ? before : names[0];
    };
    const mark = () => buttons.forEach((button, index) => {
      const place = spec.places[index], decided = decisions()[index];
      const tag = { start: "S", goal: "G" }[place.mark] || "";
      const action = decided ? spec.actions[decided[0]] : "";
      const why = decided ? `: ${action}, by ${spec.who[decided[1]]}` : `: ${place.mark || "nothing learned here"}`;
      button.disabled = !decided;
      button.className = `${place.mark} ${decided && spec.who[decided[1]] === "dominance" ? "dominance" : ""}`;
      button.setAttribute("aria-pressed", String(index === state));
      button.tabIndex = index === state ? 0 : -1;
      button.setAttribute("aria-label", place.label + why);
      button.title = place.label + why;
      const shown = spec.columns ? (decided ? spec.arrows[decided[0]] : tag) : place.text;
      button.replaceChildren(make("span", { class: "arrow" }, shown));
      if (tag && decided && spec.columns) button.append(make("span", { class: "tag" }, tag));
    });
    const focused = (numbers, [action, , tied]) => {
      const all = spec.actions.map((_, a) => a);
      if (!zoom.checked) return all;
      if (tied.length > 1) return all.filter((a) => tied.includes(a) || a === action);
      const best = [...all].sort((a, b) => numbers.mean[b] - numbers.mean[a]).slice(0, 2);
      return all.filter((a) => best.includes(a) || a === action);
    };
    const draw = () => {
      const numbers = spec.learned[which.value].states[state], decision = decisions()[state], [action] = decision;
      const focus = focused(numbers, decision), actions = focus.filter((a) => !hidden.has(a));
      const [low, high] = extent(focus.flatMap((a) => numbers.z[a]));
      const air = 0.08 * (high - low) || 0.01 * Math.max(Math.abs(high), 1e-6);
      const range = [low - air, high + air];
      const curve = (a) => [0, ...numbers.curve[a]], base = curve(action);
      const lines = (of) => actions.map((a) => ({ name: spec.actions[a], style: spec.styles[a], chosen: a === action, ...of(a) }));
      const [cdf, quantiles, dispersion] = figure.querySelectorAll(".plot");
      plot(cdf, "return distribution of each action", lines((a) => {
        const z = numbers.z[a];
        return { x: [range[0], ...z, range[1]], y: [0, ...z.map((_, i) => (i + 1) / z.length), 1], steps: true };
      }), { x: `${spec.unit} x`, y: "share of outcomes ≤ x", range });
      plot(quantiles, "cumulative quantiles of each action", lines((a) => {
        const own = curve(a);
        return { x: own.map((_, i) => i / (own.length - 1)), y: relative.checked ? own.map((v, i) => v - base[i]) : own };
      }), { x: "quantile level τ, worst first", y: relative.checked ? "F⁻²(τ) minus the chosen action's" : `F⁻²(τ) (${spec.unit})`, range: [0, 1] });
      plot(dispersion, "dispersion space of each action", lines((a) => {
        const mean = numbers.mean[a], top = range[1] - mean;
        const all = [[range[0], 0], ...numbers.z[a].map((v, i) => [v, numbers.frontier[a][i]]), [range[1], top]];
        const bend = all.findIndex(([v]) => v > mean); // the asymptote bends at the mean
        const [before, after] = [all[Math.max(0, bend - 1)], all[bend]];
        const share = (mean - before[0]) / (after[0] - before[0] || 1);
        all.splice(bend, 0, [mean, before[1] + share * (after[1] - before[1])]);
        return { x: all.map((p) => p[0]), y: all.map((p) => p[1]), floor: all.map(([v]) => Math.max(0, v - mean)) };
      }), { x: `${spec.unit} α`, y: "F⁽²⁾(α), shortfall below α", range });
      figure.querySelectorAll(".legend .key").forEach((key, a) => key.classList.toggle("away", !focus.includes(a)));
      find(".words").replaceChildren(...decision[3].map((i) => make("p", {}, spec.sentences[i])));
      find(".where").textContent = spec.places[state].label;
      find("tbody").replaceChildren(...spec.actions.map((name, a) => {
        const cells = [(a === action ? "→ " : "") + name, ...[numbers.mean[a], numbers.std[a], ...numbers.cvar[a]].map(format)];
        return make("tr", a === action ? { class: "chosen" } : {}, ...cells.map((text) => make("td", {}, text)));
      }));
    };
    const format = (value) => (value === null ? "" : Number(value.toPrecision(6)).toString());
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
    refresh();
  };
  document.querySelectorAll("figure.explorer").forEach(explorer);
  document.body.dataset.ready = "yes";
})();
