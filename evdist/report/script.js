"use strict";
// Map, hover, search, filter and sort of a report. Everything it shows comes from the JSON in the
// page and is written as text, never as HTML.
(() => {
  const WORDS = ["sure", "between", "outlier"];
  const NS = "http:" + "//www.w3.org/2000/svg"; // a name, not an address
  const SHAPES = {
    s: "M-4-4H4V4H-4Z", "^": "M0-5L5 4H-5Z", D: "M0-5.5L5.5 0L0 5.5L-5.5 0Z", v: "M0 5L5-4H-5Z",
    P: "M-2-5H2V-2H5V2H2V5H-2V2H-5V-2H-2Z",
    X: "M-5-3L-3-5L0-2L3-5L5-3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0Z",
    p: "M0-5L4.8-1.5L2.9 4H-2.9L-4.8-1.5Z",
  };
  const RING = "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0-5 0Z";
  const WIDE = 760, HIGH = 460, LEFT = 44, BELOW = 34, SHOWN = 50, NAMED = 24;

  const make = (name, attributes = {}, text = null) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    return node;
  };
  const draw = (name, attributes, text = null) => {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    return node;
  };

  // ---------------------------------------------------------------- tables that sort
  const number = (text) => {
    const bare = text.replace(/[,\s]/g, "");
    return bare !== "" && !Number.isNaN(Number(bare)) ? Number(bare) : null;
  };
  const compare = (a, b) => {
    const x = number(a), y = number(b);
    if (x !== null && y !== null) return x - y;
    return a.localeCompare(b, undefined, { numeric: true });
  };
  const sortable = (table) => {
    const heads = [...table.querySelectorAll("thead th")];
    heads.forEach((head, at) => {
      const button = make("button", { type: "button", class: "sort" }, head.textContent);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows].sort((a, b) => compare(
          a.cells[at].textContent.trim(), b.cells[at].textContent.trim()));
        body.replaceChildren(...(down ? rows.reverse() : rows));
      });
    });
  };
  document.querySelectorAll("table.sortable").forEach(sortable);

  // ---------------------------------------------------------------- objects
  const held = document.getElementById("object-data");
  if (!held) return;
  const data = JSON.parse(held.textContent);
  const section = document.getElementById("objects").parentElement;
  const box = document.getElementById("object-view");
  const count = data.id.length;
  const note = count < data.n
    ? `${count.toLocaleString("en")} of ${data.n.toLocaleString("en")} objects are in this page; `
      + "the shade behind them shows all. The job's objects.parquet lists every one."
    : "";

  const controls = make("div", { class: "controls" });
  const search = make("input", {
    type: "search", id: "object-search", placeholder: "search by id", "aria-label": "search by id",
  });
  controls.append(search);
  const wanted = WORDS.map((word, code) => {
    const label = make("label");
    const tick = make("input", { type: "checkbox", value: word, checked: "" });
    const many = data.decision.filter((d) => d === code).length;
    label.append(tick, ` ${word} (${many.toLocaleString("en")})`);
    controls.append(label);
    return tick;
  });
  const cluster = make("select", { "aria-label": "cluster" });
  cluster.append(make("option", { value: "" }, "all clusters"));
  data.colours.forEach((_, k) => cluster.append(make("option", { value: k }, `cluster ${k}`)));
  controls.append(cluster);
  const said = make("p", { id: "object-count", "aria-live": "polite" });

  const facts = (i) => {
    const lines = [
      ["decision", `${WORDS[data.decision[i]]} ${data.open[i]}`], ["label", data.label[i]],
      ["probability", data.probability[i]], ["margin", data.margin[i]],
      ["mass on ∅", data.empty[i]],
    ];
    (data.columns || []).forEach((name, j) => lines.push([name, data.values[j][i]]));
    return lines;
  };

  // ---------------------------------------------------------------- the map
  const points = [];
  let tip = null;
  const tell = (i, x, y) => {
    tip.replaceChildren(make("strong", {}, data.id[i]));
    const list = make("dl");
    facts(i).forEach(([name, value]) => list.append(make("dt", {}, name), make("dd", {}, value)));
    tip.append(list);
    tip.hidden = false;
    const room = tip.parentElement.getBoundingClientRect();
    tip.style.left = `${Math.min(Math.max(x - room.left + 12, 0), room.width - tip.offsetWidth)}px`;
    tip.style.top = `${y - room.top + 12}px`;
  };
  const map = () => {
    const frame = make("div", { class: "map" });
    const picture = draw("svg", {
      viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img",
      "aria-label": `Map of ${count} objects; each can be searched by its id.`,
    });
    tip = make("div", { id: "object-tip", role: "status", hidden: "" });
    const span = (values) => {
      const low = Math.min(...values), high = Math.max(...values), pad = (high - low) * 0.04 || 1;
      return [low - pad, high + pad];
    };
    const reach = (values, d) => span(d ? [...values, ...d] : values);
    const [x0, x1] = reach(data.x, data.density && data.density.x);
    const [y0, y1] = reach(data.y, data.density && data.density.y);
    const across = (x) => LEFT + (x - x0) / (x1 - x0) * (WIDE - LEFT - 8);
    const up = (y) => HIGH - BELOW - (y - y0) / (y1 - y0) * (HIGH - BELOW - 8);
    if (data.density) {
      const { x, y, cells } = data.density, w = (x[1] - x[0]) / cells.length,
        h = (y[1] - y[0]) / cells[0].length;
      cells.forEach((column, a) => column.forEach((shade, b) => {
        if (shade > 0) picture.append(draw("rect", {
          class: "shade", x: across(x[0] + a * w), y: up(y[0] + (b + 1) * h), opacity: shade * 0.35,
          width: across(x[0] + w) - across(x[0]) + 0.3, height: up(y[0]) - up(y[0] + h) + 0.3,
        }));
      }));
    }
    for (let i = 0; i < count; i++) {
      const out = data.decision[i] === 2, k = data.label[i];
      const point = draw("path", {
        d: out ? RING : SHAPES[data.markers[k]] || SHAPES.s, tabindex: "-1",
        transform: `translate(${across(data.x[i])} ${up(data.y[i])}) scale(${count > 1500 ? 0.6 : 0.85})`,
        class: `point ${WORDS[data.decision[i]]}`, "data-id": data.id[i],
        style: `--hue: ${data.colours[k]}`,
      });
      const show = () => {
        const at = point.getBoundingClientRect();
        tell(i, at.right, at.bottom);
      };
      point.addEventListener("mouseenter", show);
      point.addEventListener("focus", show);
      point.addEventListener("mouseleave", () => { tip.hidden = true; });
      points.push(point);
      picture.append(point);
    }
    const many = data.largest.length > NAMED + 1;
    const numbers = [];  // of clusters, the largest first; one that would lie on another is left out
    data.largest.forEach((k) => {
      let mine = [];
      for (const most of [0, 1]) {  // amid the sure members, or the others where none is sure
        if (!mine.length) for (let i = 0; i < count; i++)
          if (data.label[i] === k && data.decision[i] === most) mine.push(i);
      }
      if (!mine.length) return;
      const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1];
      const x = across(middle(mine.map((i) => data.x[i])));
      const y = up(middle(mine.map((i) => data.y[i])));
      const half = 6 * String(k).length + 4; // the halo included
      if (many && numbers.some((n) => Math.abs(n.x - x) < n.half + half && Math.abs(n.y - y) < 18)) return;
      numbers.push({ x, y, half });
      picture.append(draw("text", {
        class: "number", "text-anchor": "middle", "dominant-baseline": "central", x, y,
      }, k));
    });
    data.axes.forEach((name, axis) => picture.append(draw("text", axis
      ? { class: "axis", transform: `translate(14 ${(HIGH - BELOW) / 2}) rotate(-90)`, "text-anchor": "middle" }
      : { class: "axis", x: (WIDE + LEFT) / 2, y: HIGH - 8, "text-anchor": "middle" }, name)));
    const legend = make("p", { class: "legend" });
    const key = (shape, kind, hue, name) => {
      const sign = draw("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true" });
      sign.append(draw("path", { d: shape, class: `point ${kind}`, style: `--hue: ${hue}` }));
      const item = make("span");
      item.append(sign, ` ${name}`);
      legend.append(item);
    };
    const more = many ? data.largest.length - NAMED : 0;
    const named = many ? data.largest.slice(0, NAMED) : data.largest.map((_, k) => k);
    named.forEach((k) =>
      key(SHAPES[data.markers[k]] || SHAPES.s, "sure", data.colours[k], `cluster ${k}`));
    if (many) legend.append(make("span", {}, `and ${more.toLocaleString("en")} smaller ones, `
      + "whose signs repeat: point at an object to see its cluster"));
    key(SHAPES.s, "between", "#777777", "between clusters (pale)");
    key(RING, "outlier", "#777777", "outlier");
    frame.append(picture, tip);
    return [frame, legend];
  };

  // ---------------------------------------------------------------- the list
  const names = ["id", "decision", "open", "label", "probability", "margin", "mass on ∅",
    ...(data.columns || [])];
  const list = make("table", { class: "sortable", id: "object-list" });
  const head = make("tr");
  names.forEach((name) => head.append(make("th", { scope: "col" }, name)));
  list.append(make("thead"), make("tbody"));
  list.tHead.append(head);
  const holder = make("div", { class: "scroll list" });
  holder.append(list);

  const chosen = () => {
    const words = search.value.trim().toLowerCase(), only = cluster.value;
    const found = [];
    for (let i = 0; i < count; i++) {
      if (wanted[data.decision[i]].checked && (only === "" || data.label[i] === Number(only))
        && (words === "" || data.id[i].toLowerCase().includes(words))) found.push(i);
    }
    // An id that is the words themselves comes first, then the unsure ones.
    const rank = (i) => (words !== "" && data.id[i].toLowerCase() === words ? -1 : data.margin[i]);
    return found.sort((a, b) => rank(a) - rank(b));
  };
  const refresh = () => {
    const found = chosen(), there = new Set(found);
    points.forEach((point, i) => point.classList.toggle("dim", !there.has(i)));
    const searched = search.value.trim() !== "" && found.length <= SHOWN;
    points.forEach((point, i) => point.classList.toggle("found", searched && there.has(i)));
    list.tBodies[0].replaceChildren(...found.slice(0, SHOWN).map((i) => {
      const row = make("tr");
      [data.id[i], WORDS[data.decision[i]], data.open[i], data.label[i], data.probability[i],
        data.margin[i], data.empty[i], ...(data.columns || []).map((_, j) => data.values[j][i]),
      ].forEach((value, at) => row.append(at
        ? make("td", {}, value) : make("th", { scope: "row" }, value)));
      return row;
    }));
    list.querySelectorAll("th[aria-sort]").forEach((one) => one.removeAttribute("aria-sort"));
    const more = found.length > SHOWN ? `, the ${SHOWN} least sure of them listed` : "";
    said.textContent = `${found.length.toLocaleString("en")} objects${more}`;
  };
  [search, cluster, ...wanted].forEach((one) => one.addEventListener("input", refresh));

  box.append(controls);
  if (note) box.append(make("p", {}, note));
  if (data.x) box.append(...map());
  box.append(said, holder);
  sortable(list);
  refresh();
  section.hidden = false;
})();
