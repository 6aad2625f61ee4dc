// Draws the figures of a report page.
//
// For: pages made by `cachewright.report`; Vega-Embed is defined before. Each `.figure` holds a
// JSON script with its panels and legends. Colours are the page's CSS variables, so that light and
// dark need no second drawing. Must never know: what the figures show. Texts enter the page as text
// alone. Units: CSS pixels.
(() => {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  // Panels narrower than this have the names of their rows above the marks.
  const NARROW = 520;
  const NAME_HEIGHT = 16;
  const LEFT_EXTENT = 44;
  const SHAPES = {
    "circle": "M6 2a4 4 0 1 0 .01 0Z",
    "square": "M2.5 2.5h7v7h-7Z",
    "triangle-up": "M6 2L10.2 9.5H1.8Z",
    "diamond": "M6 1.2L10.3 6L6 10.8L1.7 6Z",
    "cross": "M4.6 1.8h2.8v2.8h2.8v2.8H7.4v2.8H4.6V7.4H1.8V4.6h2.8Z",
    "triangle-down": "M6 10L1.8 2.5H10.2Z",
  };

  // Rows of a narrow panel are higher by their names, which stand above bars or dots.
  function rowsOf(panel, narrow, width) {
    if (!narrow || !panel.names) {
      const beside = { labelLimit: Math.round(width * 0.35), labelOverlap: false };
      return { axisYBand: beside, axisYPoint: beside };
    }
    const step = panel.spec.height / panel.names + NAME_HEIGHT;
    const gap = Math.min((NAME_HEIGHT + 4) / step, 0.6), half = (step * (1 - gap)) / 2;
    const above = {
      labelAlign: "left", labelBaseline: "bottom", labelPadding: -2, ticks: false,
      domain: false, labelLimit: width - 40, labelOverlap: false,
    };
    return {
      axisYBand: { ...above, labelOffset: -half },
      axisYPoint: { ...above, labelOffset: -7 },
      scale: { barBandPaddingInner: gap, bandWithNestedOffsetPaddingInner: gap,
        bandPaddingOuter: gap, bandWithNestedOffsetPaddingOuter: gap },
    };
  }

  function config(panel, narrow, width) {
    return {
      background: null, aria: false, font: "system-ui, sans-serif",
      legend: { disable: true }, view: { stroke: null },
      axis: {
        labelColor: "var(--ink)", titleColor: "var(--ink)", gridColor: "var(--line)",
        domainColor: "var(--line)", tickColor: "var(--line)", labelFontSize: 12,
        titleFontSize: 12, titleFontWeight: "normal", labelOverlap: true, labelSeparation: 6,
      },
      // Panels under each other begin at one place.
      axisYQuantitative: { minExtent: LEFT_EXTENT },
      axisX: { tickCount: Math.max(3, Math.round(width / 80)) },
      ...rowsOf(panel, narrow, width),
    };
  }

  function fitted(panel, narrow) {
    const height = panel.spec.height + (narrow ? NAME_HEIGHT * panel.names : 0);
    return { ...panel.spec, height };
  }

  // The cell around a mark says what the mark does. (Vega-Lite's own text for cells reads names from
  // the wrong object.)
  function nearest(spec) {
    for (const mark of spec.marks || []) {
      if (mark.encode && mark.encode.update && mark.encode.update.isVoronoi) {
        mark.encode.update.tooltip = { signal: "datum.tooltip" };
      }
      nearest(mark);
    }
    return spec;
  }

  // A panel draws itself again when it becomes narrow or wide; between, Vega follows the width.
  function panelOf(element, panel) {
    let view = null, drawn = null, queue = Promise.resolve(), focus = "";
    async function draw(narrow, width) {
      if (view) view.finalize();
      const place = document.createElement("div");
      element.replaceChildren(place);
      const made = await vegaEmbed(place, fitted(panel, narrow), {
        mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false,
        config: config(panel, narrow, width), tooltip: { theme: "page" }, patch: nearest,
      });
      view = element.view = made.view;
      if (focus) show(focus);
    }
    function update() {
      const width = element.clientWidth, narrow = width < NARROW;
      if (width === 0 || narrow === drawn) return queue;
      drawn = narrow;
      queue = queue.then(() => draw(narrow, width)).catch((error) => {
        element.textContent = "This figure could not be drawn.";
        console.error(error);
      });
      return queue;
    }
    function show(name) {
      focus = name;
      if (!view || !(panel.spec.params || []).some((param) => param.name === "focus")) return;
      view.signal("focus", name).runAsync();
    }
    return { element, update, show };
  }

  function drawing(entry, mark) {
    const svg = document.createElementNS(SVG, "svg");
    const add = (name, attributes) => {
      const child = document.createElementNS(SVG, name);
      for (const [key, value] of Object.entries(attributes)) child.setAttribute(key, value);
      svg.append(child);
    };
    const colour = entry.colour || "currentColor", width = mark === "line" ? 22 : 12;
    svg.setAttribute("viewBox", `${-(width - 12) / 2} 0 ${width} 12`);
    svg.setAttribute("width", width);
    svg.setAttribute("height", 12);
    svg.setAttribute("aria-hidden", "true");
    if (mark === "line") {
      const dash = (entry.dash || []).join(" ");
      add("line", { x1: -5, x2: 17, y1: 6, y2: 6, stroke: colour, "stroke-width": 2,
        "stroke-dasharray": dash });
    }
    if (mark === "box") add("path", { d: "M1 1h10v10h-10Z", fill: colour });
    if (entry.shape || mark === "point") {
      add("path", { d: SHAPES[entry.shape || "circle"], fill: colour });
    }
    return svg;
  }

  function textOf(tag, text) {
    const element = document.createElement(tag);
    element.textContent = text;
    return element;
  }

  // What a press does is said once, beside the first names of the page.
  let explained = false;

  // A name under the pointer, or chosen by a press, stays bright while the others dim.
  function legendOf(legend, panels) {
    const list = document.createElement("div");
    list.className = "legend";
    if (legend.title) list.append(textOf("b", legend.title));
    if (legend.ramp) {
      const ramp = document.createElement("i");
      ramp.style.setProperty("--ramp", legend.colour);
      list.append(textOf("span", legend.ramp[0]), ramp, textOf("span", legend.ramp[1]));
      return list;
    }
    let chosen = "";
    const show = (name) => panels.forEach((panel) => panel.show(name));
    for (const entry of legend.entries) {
      const item = textOf(legend.focus ? "button" : "span", entry.name);
      item.prepend(drawing(entry, legend.mark));
      list.append(item);
      if (!legend.focus) continue;
      item.type = "button";
      item.setAttribute("aria-pressed", "false");
      item.addEventListener("pointerenter", () => show(entry.name));
      item.addEventListener("pointerleave", () => show(chosen));
      item.addEventListener("click", () => {
        chosen = chosen === entry.name ? "" : entry.name;
        for (const other of list.querySelectorAll("button")) {
          other.setAttribute("aria-pressed", String(other === item && chosen !== ""));
        }
        show(chosen);
      });
    }
    if (legend.grey) {
      const others = legend.grey === 1 ? "1 other" : `${legend.grey} others`;
      list.append(textOf("small", `${others} in grey, which the pointer names.`));
    }
    if (legend.focus && legend.entries.length > 1 && !explained) {
      list.append(textOf("small", "A click on a name singles it out."));
      explained = true;
    }
    return list;
  }

  function figureOf(section) {
    const what = JSON.parse(section.querySelector("script").textContent);
    const places = section.querySelectorAll(".chart");
    const panels = what.panels.map((panel, at) => {
      if (panel.title) places[at].before(textOf("h3", panel.title));
      return panelOf(places[at], panel);
    });
    const legends = what.legends.map((legend) => legendOf(legend, panels));
    section.prepend(...legends);
    return panels;
  }

  const panels = [...document.querySelectorAll(".figure")].flatMap(figureOf);
  const updateAll = () => Promise.all(panels.map((panel) => panel.update()));
  const watch = new ResizeObserver(updateAll);
  for (const panel of panels) watch.observe(panel.element);
  updateAll().then(() => { document.documentElement.dataset.figures = "drawn"; });
})();
