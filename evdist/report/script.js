"use strict";
// What moves in a report: the map with hover, zoom and selection, the cards, and tables with search,
// filters, order and pages. Everything it shows comes from the JSON in the page and is written as
// text, never as HTML. In this file i is an object of the page and k a cluster.
(() => {
  const WORDS = ["sure", "between", "outlier"];
  const NS = "http:" + "//www.w3.org/2000/svg"; // a name, not an address
  const SHAPES = {
    s: "M-4-4H4V4H-4Z", "^": "M0-5L5 4H-5Z", D: "M0-5.5L5.5 0L0 5.5L-5.5 0Z", v: "M0 5L5-4H-5Z",
    P: "M-2-5H2V-2H5V2H2V5H-2V2H-5V-2H-2Z",
    X: "M-5-3L-3-5L0-2L3-5L5-3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0Z",
    p: "M0-5L4.8-1.5L2.9 4H-2.9L-4.8-1.5Z", o: "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0-5 0Z",
  };
  // Rows of a page; clusters named in the map; clusters that have outlines without being asked.
  const ROWS = 25, NAMED = 24, OUTLINED = 10, COLOURS = 8;
  // How near the pointer must come, in pixels; the closest zoom.
  const NEAR = 14, MOST_ZOOM = 60;

  const make = (name, attributes = {}, text = null) => {
    const node = name === "svg" || name === "path"
      ? document.createElementNS(NS, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    return node;
  };
  const button = (text, press, attributes = {}) => {
    const node = make("button", { type: "button", ...attributes }, text);
    node.addEventListener("click", press);
    return node;
  };
  const many = (count) => count.toLocaleString("en");

  // ---------------------------------------------------------------- order and pages of tables
  const number = (text) => {
    const bare = String(text).replace(/[,\s]/g, "");
    return bare !== "" && !Number.isNaN(Number(bare)) ? Number(bare) : null;
  };
  const compare = (a, b) => {
    const x = number(a), y = number(b);
    if (x !== null && y !== null) return x - y;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  };
  // Buttons in the heads; `sort` is told the column and whether it falls.
  const sortable = (table, sort) => {
    const heads = [...table.querySelectorAll("thead th")];
    heads.forEach((head, at) => head.replaceChildren(button(head.textContent, () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(at, down);
    }, { class: "sort" })));
  };
  // Buttons that turn pages; `show` is told the first row and the one after the last.
  const pager = (show) => {
    const bar = make("div", { class: "pages" }), where = make("span");
    let first = 0, count = 0;
    const turn = (to) => {
      first = Math.max(0, Math.min(to, count - 1));
      first -= first % ROWS;
      const end = Math.min(first + ROWS, count);
      where.textContent = count ? `${many(first + 1)} to ${many(end)} of ${many(count)}` : "none";
      back.disabled = first === 0;
      on.disabled = end >= count;
      bar.hidden = count <= ROWS;
      show(first, end);
    };
    const back = button("‹ previous", () => turn(first - ROWS));
    const on = button("next ›", () => turn(first + ROWS));
    bar.append(back, where, on);
    return { bar, of: (rows) => { count = rows; turn(0); } };
  };
  document.querySelectorAll("table.sortable").forEach((table) => {
    const body = table.tBodies[0];
    let rows = [...body.rows];
    const pages = pager((first, end) =>
      rows.forEach((row, at) => { row.hidden = at < first || at >= end; }));
    sortable(table, (at, down) => {
      rows.sort((a, b) => compare(a.cells[at].textContent.trim(), b.cells[at].textContent.trim()));
      if (down) rows.reverse();
      body.replaceChildren(...rows);
      pages.of(rows.length);
    });
    pages.of(rows.length);
    table.parentElement.after(pages.bar);
  });

  // ---------------------------------------------------------------- objects, and which are looked at
  const data = JSON.parse(document.getElementById("object-data").textContent);
  const count = data.id.length, clusters = data.markers.length;
  const open = (i) => data.open.texts[data.open.codes[i]];
  const value = (j, i) => data.values[j].texts[data.values[j].codes[i]];
  const shape = (k) => SHAPES[data.markers[k]] || SHAPES.s;
  const looked = { cluster: null, area: null, ring: null, found: [] };
  const columns = [
    ["id", (i) => data.id[i]], ["decision", (i) => WORDS[data.decision[i]]], ["open", open],
    ["label", (i) => data.label[i]], ["probability", (i) => data.probability[i]],
    ["margin", (i) => data.margin[i]], ["mass on ∅", (i) => data.empty[i]],
    ...(data.columns || []).map((name, j) => [name, (i) => value(j, i)]),
  ];

  // ---------------------------------------------------------------- search and filters
  const controls = make("div", { class: "controls" });
  const search = make("input", {
    type: "search", id: "object-search", placeholder: "search by id", "aria-label": "search by id",
  });
  const wanted = WORDS.map((word, code) => {
    const tick = make("input", { type: "checkbox", value: word, checked: "" });
    const label = make("label");
    label.append(tick, ` ${word} (${many(data.decision.filter((d) => d === code).length)})`);
    return tick;
  });
  const pick = make("select", { "aria-label": "cluster" });
  pick.append(make("option", { value: "" }, "all clusters"));
  for (let k = 0; k < clusters; k++) pick.append(make("option", { value: k }, `cluster ${k}`));
  controls.append(search, ...wanted.map((tick) => tick.parentElement), pick);
  const said = make("p", { id: "object-count", class: "soft", "aria-live": "polite" });

  const choose = (k) => {
    looked.cluster = k === looked.cluster ? null : k;
    pick.value = looked.cluster ?? "";
    document.querySelectorAll("[data-cluster].cluster, .legend button").forEach((one) => {
      const chosen = looked.cluster !== null && Number(one.dataset.cluster) === looked.cluster;
      one.classList.toggle("chosen", chosen);
      (one.querySelector(".pick") || one).setAttribute("aria-pressed", chosen);
    });
    update();
  };
  const showCard = () => {
    const card = document.getElementById(`cluster-${looked.cluster}`);
    if (!card) return;
    const folded = card.closest("details");
    if (folded) folded.open = true;
    const [strip, aside] = [card.closest(".cards"), card.closest(".aside > div")];
    strip.scrollTo({ left: card.offsetLeft - strip.offsetLeft, behavior: "smooth" });
    const down = card.getBoundingClientRect().top - aside.getBoundingClientRect().top;
    aside.scrollTo({ top: aside.scrollTop + down, behavior: "smooth" });
  };
  document.addEventListener("click", (event) => {
    const one = event.target.closest("[data-cluster]");
    if (one && !String(getSelection())) choose(Number(one.dataset.cluster));
  });

  const chosen = () => {
    const words = search.value.trim().toLowerCase(), area = looked.area, found = [];
    for (let i = 0; i < count; i++) {
      if (!wanted[data.decision[i]].checked) continue;
      if (looked.cluster !== null && data.label[i] !== looked.cluster) continue;
      if (words !== "" && !data.id[i].toLowerCase().includes(words)) continue;
      if (area && (data.x[i] < area[0] || data.x[i] > area[1]
        || data.y[i] < area[2] || data.y[i] > area[3])) continue;
      found.push(i);
    }
    // An id that is the words themselves comes first, then the unsure ones.
    const rank = (i) => (words !== "" && data.id[i].toLowerCase() === words ? -1 : data.margin[i]);
    return found.sort((a, b) => rank(a) - rank(b));
  };
  const tell = () => {
    const found = looked.found, parts = [`${many(found.length)} objects`];
    if (count < data.n) parts[0] += ` of the ${many(count)} in this page (${many(data.n)} in all)`;
    if (looked.area) {
      const held = new Map();
      found.forEach((i) => held.set(data.label[i], (held.get(data.label[i]) || 0) + 1));
      const most = [...held].sort((a, b) => b[1] - a[1]).slice(0, 6);
      parts.push(`in the area: ${most.map(([k, n]) => `${many(n)} in cluster ${k}`).join(", ")}`);
    }
    said.replaceChildren(parts.join(" "));
    if (looked.area || looked.cluster !== null) {
      const clear = () => { looked.area = null; choose(looked.cluster); };
      said.append(" ", button("show all", clear, { class: "link" }));
    }
  };

  // ---------------------------------------------------------------- the map
  const makeMap = (place) => {
    const frame = make("div", { class: "map" });
    const canvas = make("canvas", {
      tabindex: "0", role: "img", "aria-label": `Map of ${count} objects. Plus and minus zoom, `
        + "arrows move, 0 shows all. The table of objects lists each of them.",
    });
    const tip = make("div", { id: "object-tip", role: "status", hidden: "" });
    const numbers = make("div", { "aria-hidden": "true" });
    const beyond = make("span", { class: "beyond" });
    const pen = canvas.getContext("2d");
    const paths = Object.fromEntries(Object.entries(SHAPES).map(([name, d]) => [name, new Path2D(d)]));
    const free = data.kind === "columns", bare = data.kind === "neighbours";
    const span = (values, ends) => {
      const [low, high] = [...values, ...ends].reduce(
        ([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
      const pad = (high - low) * 0.03 || 1;
      return [low - pad, high + pad];
    };
    const [x0, x1] = span(data.x, data.density ? data.density.x : []);
    const [y0, y1] = span(data.y, data.density ? data.density.y : []);
    // The middle of the view in units of the data, and how much larger than all it is.
    const view = { x: (x0 + x1) / 2, y: (y0 + y1) / 2, zoom: 1 };
    const room = { left: bare ? 8 : 50, below: bare ? 8 : 36, wide: 0, high: 0 };
    let scale = [1, 1], outlines = clusters <= OUTLINED && !bare, selecting = false, drag = null, due = false,
      fresh = true;
    const middle = () => [(room.left + room.wide - 8) / 2, (room.high - room.below + 8) / 2];
    const across = (x) => middle()[0] + (x - view.x) * scale[0] * view.zoom;
    const up = (y) => middle()[1] - (y - view.y) * scale[1] * view.zoom;
    const back = (px, py) => [view.x + (px - middle()[0]) / scale[0] / view.zoom,
      view.y - (py - middle()[1]) / scale[1] / view.zoom];

    // A few outliers far away do not make all others small: the first view is that of the others.
    const focus = () => {
      fresh = false;
      const inner = (values) => values.filter((_, i) => data.decision[i] < 2);
      if (!inner(data.x).length) return;
      const [a, b] = span(inner(data.x), []), [c, d] = span(inner(data.y), []);
      const zoom = Math.min((room.wide - room.left - 8) / (b - a) / scale[0],
        (room.high - room.below - 8) / (d - c) / scale[1]);
      if (zoom > 1.3) Object.assign(view, { x: (a + b) / 2, y: (c + d) / 2, zoom });
    };
    const shade = () => { // the density of all objects as an image, in the colours of clusters
      const { cells: [w, h], shade: dark, label } = data.density;
      const bytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
      const alpha = bytes(dark), who = new Uint16Array(bytes(label).buffer);
      const image = new OffscreenCanvas(w, h), ink = image.getContext("2d");
      const pixels = ink.createImageData(w, h), hues = new Map();
      for (let at = 0; at < w * h; at++) {
        if (!alpha[at]) continue;
        const k = who[at], to = 4 * ((h - 1 - Math.floor(at / w)) * w + (at % w));
        if (!hues.has(k)) hues.set(k, colour(k).match(/\w\w/g).map((two) => parseInt(two, 16)));
        const dim = looked.cluster !== null && k !== looked.cluster;
        pixels.data.set([...hues.get(k), (dim ? 0.12 : 0.85) * (30 + 0.88 * alpha[at])], to);
      }
      ink.putImageData(pixels, 0, 0);
      return image;
    };
    let style = null;
    const tone = (name) => style.getPropertyValue(name).trim();
    const colour = (k) => tone(`--c${k % COLOURS}`);

    const point = (i, size) => {
      const out = data.decision[i] === 2, k = data.label[i];
      pen.save();
      pen.translate(across(data.x[i]), up(data.y[i]));
      pen.scale(size, size);
      const path = paths[out ? "o" : data.markers[k]] || paths.s;
      pen.strokeStyle = out ? tone("--ink") : colour(k);
      pen.lineWidth = 1.2;
      if (!out) {
        pen.fillStyle = colour(k);
        const before = pen.globalAlpha;
        pen.globalAlpha = before * (data.decision[i] === 1 ? 0.25 : 1);
        pen.fill(path);
        pen.globalAlpha = before;
      }
      if (out || data.decision[i] === 1) pen.stroke(path);
      pen.restore();
    };
    const line = (corners, dashes, k) => {
      if (corners.length < 2) return;
      pen.beginPath();
      corners.forEach((i) => pen.lineTo(across(data.x[i]), up(data.y[i])));
      pen.closePath();
      pen.setLineDash(dashes);
      pen.strokeStyle = colour(k);
      pen.lineWidth = 1.3;
      pen.stroke();
      pen.setLineDash([]);
    };
    let hulls = null;
    const drawOutlines = () => {
      hulls = hulls || hullsOf(data.largest.slice(0, NAMED));
      hulls.forEach(([k, sure, wide]) => {
        if (looked.cluster !== null && k !== looked.cluster) return;
        line(wide, [4, 4], k);
        line(sure, [], k);
      });
    };
    const drawAxes = () => {
      if (bare) return;
      const foot = room.high - room.below;
      pen.fillStyle = tone("--card");
      pen.fillRect(0, 0, room.left, room.high);
      pen.fillRect(0, foot, room.wide, room.below);
      pen.fillStyle = tone("--soft");
      pen.font = "11px system-ui, sans-serif";
      pen.textBaseline = "middle";
      const [[low, bottom], [high, top]] = [back(room.left, foot), back(room.wide - 8, 8)];
      pen.textAlign = "center";
      ticks(low, high).forEach((x) => pen.fillText(String(x), across(x), foot + 9));
      pen.textAlign = "right";
      ticks(bottom, top).forEach((y) => pen.fillText(String(y), room.left - 5, up(y)));
      pen.textAlign = "center";
      pen.font = "12px system-ui, sans-serif";
      pen.fillText(data.axes[0], (room.left + room.wide) / 2, room.high - 9);
      pen.translate(10, foot / 2);
      pen.rotate(-Math.PI / 2);
      pen.fillText(data.axes[1], 0, 0);
    };
    const middles = middlesOf();
    const drawNumbers = () => { // the largest first; one that would lie on another is left out
      const there = [];
      data.largest.forEach((k) => {
        const [x, y] = middles[k] ? [across(middles[k][0]), up(middles[k][1])] : [-1, -1];
        const half = 6 * String(k).length + 4; // the halo included
        if (x < room.left + half || x > room.wide - half || y < 8 || y > room.high - room.below) return;
        if (there.some((n) => Math.abs(n.x - x) < n.half + half && Math.abs(n.y - y) < 20)) return;
        there.push({ k, x, y, half });
      });
      numbers.replaceChildren(...there.map(({ k, x, y }) => make("span", {
        class: looked.cluster === null || looked.cluster === k ? "number" : "number dim",
        style: `left: ${x}px; top: ${y}px`,
      }, k)));
    };
    const paint = () => {
      due = false;
      style = getComputedStyle(document.documentElement);
      const ratio = Math.max(window.devicePixelRatio || 1, 1) * ("print" in document.documentElement.dataset ? 2 : 1);
      [room.wide, room.high] = [frame.clientWidth, frame.clientHeight];
      canvas.width = room.wide * ratio;
      canvas.height = room.high * ratio;
      scale = [(room.wide - room.left - 8) / (x1 - x0), (room.high - room.below - 8) / (y1 - y0)];
      if (!free) scale = [Math.min(...scale), Math.min(...scale)]; // one unit both ways
      if (fresh) focus();
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      const everything = looked.found.length === count;
      if (data.density) {
        const { x, y } = data.density;
        pen.globalAlpha = view.zoom < 3 ? 1 : 0.5;
        pen.drawImage(shade(), across(x[0]), up(y[1]), across(x[1]) - across(x[0]), up(y[0]) - up(y[1]));
      }
      const size = (count > 1500 ? 0.55 : count > 400 ? 0.7 : 0.85) * Math.min(view.zoom ** 0.35, 2.2);
      // Above the density of all, those of the page would hide it until there is room for them.
      const faint = data.density && everything && view.zoom < 3;
      const there = new Set(looked.found);
      for (const last of [false, true]) {
        for (let i = 0; i < count; i++) {
          if (there.has(i) !== last) continue;
          pen.globalAlpha = !last ? 0.08 : faint ? (data.decision[i] === 2 ? 0.3 : 0) : 1;
          if (pen.globalAlpha) point(i, size);
        }
      }
      pen.globalAlpha = 1;
      if (outlines) drawOutlines();
      const searched = search.value.trim() !== "" && looked.found.length <= ROWS ? looked.found : [];
      [...searched, ...(looked.ring === null ? [] : [looked.ring])].forEach((i) => {
        pen.beginPath();
        pen.arc(across(data.x[i]), up(data.y[i]), 9, 0, 2 * Math.PI);
        pen.lineWidth = 2.5;
        pen.strokeStyle = tone("--ink");
        pen.stroke();
        point(i, size * 1.3);
      });
      const area = drag && drag.corner ? [drag.corner, drag.now] : null;
      if (area || looked.area) {
        const [[a, b], [c, d]] = area || [[looked.area[0], looked.area[2]], [looked.area[1], looked.area[3]]];
        pen.strokeStyle = tone("--mark");
        pen.lineWidth = 1.5;
        pen.strokeRect(across(a), up(b), across(c) - across(a), up(d) - up(b));
      }
      drawAxes();
      drawNumbers();
      const inside = (i) => Math.abs(across(data.x[i]) - middle()[0]) < room.wide / 2
        && Math.abs(up(data.y[i]) - middle()[1]) < room.high / 2;
      const out = looked.found.filter((i) => !inside(i)).length;
      beyond.textContent = out ? `${many(out)} objects lie beyond the edge` : "";
      canvas.dataset.view = JSON.stringify([middle(), [view.x, view.y],
        scale.map((one) => one * view.zoom)]);
    };
    const redraw = () => {
      if (!due) requestAnimationFrame(paint);
      due = true;
    };

    // ------------------------------------------------ hands
    const zoom = (times, px = middle()[0], py = middle()[1]) => {
      const [x, y] = back(px, py), zoomed = Math.min(Math.max(view.zoom * times, 1), MOST_ZOOM);
      view.x = x - (x - view.x) * view.zoom / zoomed;
      view.y = y - (y - view.y) * view.zoom / zoomed;
      view.zoom = zoomed;
      if (zoomed === 1) [view.x, view.y] = [(x0 + x1) / 2, (y0 + y1) / 2];
      canvas.style.touchAction = zoomed > 1 ? "none" : "pan-y"; // a finger moves the page, or the map
      redraw();
    };
    const move = (px, py) => {
      if (view.zoom === 1) return;
      view.x -= px / scale[0] / view.zoom;
      view.y += py / scale[1] / view.zoom;
      redraw();
    };
    const nearest = (px, py) => {
      let best = null, least = NEAR * NEAR;
      looked.found.forEach((i) => {
        const far = (across(data.x[i]) - px) ** 2 + (up(data.y[i]) - py) ** 2;
        if (far < least) [best, least] = [i, far];
      });
      return best;
    };
    const show = (i) => {
      tip.hidden = i === null;
      if (i === null) return;
      const list = make("dl");
      columns.slice(1).forEach(([name, of]) => {
        if (name !== "open") list.append(make("dt", {}, name),
          make("dd", {}, name === "decision" ? `${of(i)} ${open(i)}` : of(i)));
      });
      tip.replaceChildren(make("strong", {}, data.id[i]), list);
      const [x, y] = [across(data.x[i]), up(data.y[i])];
      const right = x + 14 + tip.offsetWidth < room.wide;
      tip.style.left = `${Math.max(right ? x + 14 : x - 14 - tip.offsetWidth, 0)}px`;
      tip.style.top = `${Math.max(Math.min(y, room.high - tip.offsetHeight - 4), 0)}px`;
    };
    const ring = (i) => {
      if (looked.ring === i) return;
      looked.ring = i;
      redraw();
    };
    const fingers = new Map();
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      const [px, py] = at(event);
      fingers.set(event.pointerId, [px, py]);
      canvas.setPointerCapture(event.pointerId);
      drag = { px, py, far: 0, pinch: fingers.size > 1 };
      if ((selecting || event.shiftKey) && !drag.pinch) drag.corner = drag.now = back(px, py);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [px, py] = at(event), before = fingers.get(event.pointerId);
      if (!before) {
        const i = nearest(px, py);
        ring(i);
        show(i);
        return;
      }
      const gap = () => {
        const [a, b] = [...fingers.values()];
        return Math.hypot(a[0] - b[0], a[1] - b[1]);
      };
      drag.far += Math.abs(px - before[0]) + Math.abs(py - before[1]);
      const wide = fingers.size > 1 ? gap() : 0;
      fingers.set(event.pointerId, [px, py]);
      if (fingers.size > 1) zoom(gap() / Math.max(wide, 1), px, py);
      else if (drag.corner) drag.now = back(px, py);
      else move(px - before[0], py - before[1]);
      redraw();
    });
    const up_ = (event) => {
      const [px, py] = at(event);
      fingers.delete(event.pointerId);
      if (!drag || fingers.size) return;
      const { far, corner, now, pinch } = drag;
      drag = null;
      if (corner && far > 5) {
        const sorted = (a, b) => [Math.min(a, b), Math.max(a, b)];
        looked.area = [...sorted(corner[0], now[0]), ...sorted(corner[1], now[1])];
        update();
      } else if (far <= 5 && !pinch && event.type === "pointerup") {
        const i = nearest(px, py);
        looked.area = null;
        ring(i);
        show(i);
        choose(i === null ? looked.cluster : data.label[i]);
        if (i !== null) showCard();
      }
      redraw();
    };
    canvas.addEventListener("pointerup", up_);
    canvas.addEventListener("pointercancel", up_);
    canvas.addEventListener("pointerleave", () => { ring(null); show(null); });
    canvas.addEventListener("wheel", (event) => {
      // The wheel turns the page; over a map that was clicked at, or with Ctrl, it zooms.
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      show(null);
      zoom(Math.exp(-event.deltaY / 300), ...at(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
      const acts = { "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5),
        0: () => zoom(0), Escape: () => { looked.area = null; choose(looked.cluster); } };
      if (acts[event.key]) acts[event.key]();
      else if (step[event.key] && view.zoom > 1) move(...step[event.key]);
      else return;
      event.preventDefault();
    });
    const toggle = (name, is, turn) => {
      const one = button(name, () => { one.setAttribute("aria-pressed", turn()); redraw(); });
      one.setAttribute("aria-pressed", is);
      return one;
    };
    const tools = make("div", { class: "tools" });
    tools.append(
      button("+", () => zoom(1.6), { "aria-label": "zoom in" }),
      button("−", () => zoom(1 / 1.6), { "aria-label": "zoom out" }),
      button("whole", () => zoom(0)),
      toggle("select an area", false, () => (selecting = !selecting)),
      toggle("outlines", outlines, () => (outlines = !outlines)),
    );
    tools.append(beyond);
    frame.append(canvas, numbers, tip);
    place.append(tools, frame, legend(), said);
    new ResizeObserver(redraw).observe(frame);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    return { redraw, paint, ring };
  };

  // Where most of the sure members of a cluster are, or of the others where none is sure.
  const middlesOf = () => {
    const held = Array.from({ length: clusters }, () => [[], []]);
    for (let i = 0; i < count; i++)
      if (data.decision[i] < 2) held[data.label[i]][data.decision[i]].push(i);
    const half = (values) => values.sort((a, b) => a - b)[values.length >> 1];
    const reach = ["x", "y"].map((axis) => {
      const sorted = [...data[axis]].sort((a, b) => a - b), at = (q) => sorted[Math.floor(q * (count - 1))];
      return [at(0.02), (at(0.98) - at(0.02)) / 8 || 1];
    });
    const cell = (i) => ["x", "y"].map((axis, a) =>
      Math.floor((data[axis][i] - reach[a][0]) / reach[a][1])).join();
    return held.map(([sure, between]) => {
      const mine = sure.length ? sure : between, cells = new Map();
      if (!mine.length) return null;
      mine.forEach((i) => cells.set(cell(i), [...(cells.get(cell(i)) || []), i]));
      const most = [...cells.values()].reduce((a, b) => (b.length > a.length ? b : a));
      return [half(most.map((i) => data.x[i])), half(most.map((i) => data.y[i]))];
    });
  };
  // For each cluster the corners around its sure members, and around all for which it stays open.
  const hullsOf = (named) => {
    const members = new Map(named.map((k) => [k, [[], []]]));
    const sets = data.open.texts.map((text) => (text.match(/\d+/g) || []).map(Number));
    for (let i = 0; i < count; i++) {
      if (data.decision[i] === 2) continue;
      const still = sets[data.open.codes[i]];
      still.forEach((k) => {
        if (!members.has(k)) return;
        members.get(k)[1].push(i);
        if (still.length === 1) members.get(k)[0].push(i);
      });
    }
    return [...members].map(([k, [sure, wide]]) => [k, hull(sure), hull(wide)]);
  };
  const hull = (rows) => { // Andrew's monotone chain
    const sorted = [...rows].sort((a, b) => data.x[a] - data.x[b] || data.y[a] - data.y[b]);
    const turn = (a, b, c) => (data.x[b] - data.x[a]) * (data.y[c] - data.y[a])
      - (data.y[b] - data.y[a]) * (data.x[c] - data.x[a]);
    const half = (some) => {
      const kept = [];
      some.forEach((i) => {
        while (kept.length > 1 && turn(kept.at(-2), kept.at(-1), i) <= 0) kept.pop();
        kept.push(i);
      });
      return kept.slice(0, -1);
    };
    return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
  };
  const ticks = (low, high) => {
    let step = 10 ** Math.floor(Math.log10((high - low) / 6));
    step *= [1, 2, 5, 10].find((times) => (high - low) / (times * step) <= 7);
    const found = [];
    for (let at = Math.ceil(low / step); at <= high / step; at++) found.push(Number((at * step).toPrecision(10)));
    return found;
  };
  const legend = () => {
    const line = make("p", { class: "legend" });
    const sign = (d, kind, hue) => {
      const svg = make("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true" });
      svg.append(make("path", { d, class: kind, style: `--hue: ${hue}` }));
      return svg;
    };
    const item = (node, text, inner) => { node.append(inner, ` ${text}`); line.append(node); };
    const named = clusters > NAMED + 1 ? data.largest.slice(0, NAMED) : data.markers.map((_, k) => k);
    named.forEach((k) => item(make("button", {
      type: "button", "data-cluster": k, "aria-pressed": "false", "aria-label": `cluster ${k}`,
    }), k, sign(shape(k), "sure", `var(--c${k % COLOURS})`)));
    if (named.length < clusters)
      line.append(make("span", {}, `and ${many(clusters - named.length)} smaller clusters`));
    item(make("span"), "sure", sign(SHAPES.s, "sure", "var(--soft)"));
    item(make("span"), "between clusters", sign(SHAPES.s, "between", "var(--soft)"));
    item(make("span"), "outlier", sign(SHAPES.o, "outlier", ""));
    return line;
  };

  // ---------------------------------------------------------------- the list
  const list = make("table", { id: "object-list" }), head = make("tr");
  const aligned = (at) => (at < 3 ? { class: "text" } : {});
  columns.forEach(([name], at) => head.append(make("th", { scope: "col", ...aligned(at) }, name)));
  list.append(make("thead"), make("tbody"));
  list.tHead.append(head);
  const holder = make("div", { class: "scroll" });
  holder.append(list);
  let rows = [];
  const pages = pager((first, end) => list.tBodies[0].replaceChildren(
    ...rows.slice(first, end).map((i) => {
      const row = make("tr");
      columns.forEach(([, of], at) => row.append(
        at ? make("td", aligned(at), of(i)) : make("th", { scope: "row" }, of(i))));
      row.addEventListener("mouseenter", () => map && map.ring(i));
      row.addEventListener("mouseleave", () => map && map.ring(null));
      return row;
    })));
  sortable(list, (at, down) => {
    const of = columns[at][1];
    rows = [...rows].sort((a, b) => compare(of(a), of(b)) * (down ? -1 : 1));
    pages.of(rows.length);
  });
  const update = () => {
    looked.found = rows = chosen();
    list.querySelectorAll("th[aria-sort]").forEach((one) => one.removeAttribute("aria-sort"));
    pages.of(rows.length);
    tell();
    if (map) map.redraw();
  };

  // ---------------------------------------------------------------- put together
  const place = document.getElementById("object-map"), box = document.getElementById("object-view");
  let map = null;
  if (place) map = makeMap(place);
  box.append(controls, ...(place ? [] : [said]), holder, pages.bar);
  [search, ...wanted].forEach((one) => one.addEventListener("input", update));
  pick.addEventListener("input", () => choose(pick.value === "" ? looked.cluster : Number(pick.value)));
  box.parentElement.hidden = false;
  update();

  // An image of pairs: which two objects the pointer is on.
  document.querySelectorAll("figure[data-ids]").forEach((figure) => {
    const ids = JSON.parse(figure.dataset.ids), picture = figure.querySelector("svg");
    const tip = make("div", { class: "tip", hidden: "" });
    figure.append(tip);
    picture.addEventListener("pointermove", (event) => {
      const [box, all] = [picture.getBoundingClientRect(), figure.getBoundingClientRect()];
      const [left, top, wide] = picture.dataset.box.split(" ").map(Number);
      const unit = box.width / picture.viewBox.baseVal.width;
      const cell = (far, start) => Math.floor((far / unit - start) / wide * ids.length);
      const [a, b] = [cell(event.clientY - box.top, top), cell(event.clientX - box.left, left)];
      tip.hidden = !(ids[a] && ids[b]);
      tip.textContent = tip.hidden ? "" : `${ids[a]} and ${ids[b]}`;
      tip.style.left = `${Math.min(event.clientX - all.left + 12, all.width - tip.offsetWidth)}px`;
      tip.style.top = `${event.clientY - all.top + 14}px`;
    });
    picture.addEventListener("pointerleave", () => { tip.hidden = true; });
  });

  // On paper all is open, and dark ink is on white.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    document.documentElement.dataset.print = "";
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((one) => { one.open = true; });
    if (map) map.paint();
  });
  window.addEventListener("afterprint", () => {
    delete document.documentElement.dataset.print;
    folded.forEach((one) => { one.open = false; });
    if (map) map.redraw();
  });
})();
