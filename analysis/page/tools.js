// The sections of the page of `tprof report` are made with these. Names come from traces: they become
// text, never markup.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;
const isDark = () => dark.matches && !root.classList.contains("paper");

// ---- Words

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
function duration(ns) {
  if (ns === null || ns === undefined) return "–";
  const [size, unit] = UNITS.find(([least]) => Math.abs(ns) >= least) || UNITS[3];
  const value = ns / size;
  return (unit === "ns" ? String(Math.round(value)) : value.toPrecision(value >= 1000 ? 4 : 3)) + " " + unit;
}
function bytes(n) {
  if (n === null || n === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let at = 0;
  for (; n >= 1024 && at < 6; n /= 1024) ++at;
  return (at === 0 ? String(Math.round(n)) : n.toPrecision(n >= 1000 ? 4 : 3)) + " " + units[at];
}
const count = (n) => (n === null || n === undefined ? "–" : Math.round(n).toLocaleString("en-US"));
const percent = (x) => (x === null || x === undefined ? "–" : (100 * x).toFixed(1) + "%");
const rate = (x) => (x === null || x === undefined ? "–" : x.toFixed(x < 10 ? 2 : 1));
const words = (x) => (x === null || x === undefined || x === "" ? "–"
  : Array.isArray(x) ? x.slice(0, 3).join(", ") + (x.length > 3 ? ", …" : "") : String(x));
const range = ([first, last], what) => (first === last ? `${what} ${first}` : `${what}s ${first}–${last}`);
const FORMATS = { text: words, number: words, count, bytes, ns: duration, rate, share: percent,
  size_class: (n) => (n < 0 ? "0 B" : "≥ " + bytes(2 ** n)),
  exposed: (ns, row) => duration(ns) + (ns === null ? "" : ` (${percent(ns / row.exposure_known_ns)})`) };

// ---- Elements

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
const section = (id) => document.getElementById(id);
const say = (id, text) => section(id).append(make("p", { class: "none" }, text));
const note = (id, text) => section(id).append(make("p", { class: "quiet" }, text));
function choice(label, options, onchange) {
  const select = make("select", { onchange: () => onchange(Number(select.value)) });
  options.forEach((text, i) => select.append(make("option", { value: i }, text)));
  return make("label", {}, label + " ", select);
}
function legend(entries) {
  return make("div", { class: "legend" }, ...entries.map(([text, colour]) => {
    const dot = make("i");
    dot.style.background = colour;
    return make("span", {}, dot, text);
  }));
}

// ---- Colours: Okabe and Ito's, which people who see few colours tell apart

const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#b8a800", "#7f7f7f",
  "#a6761d", "#66a61e", "#e7298a", "#1b9e77", "#7570b3"];
const BUCKETS = ["ALLGATHER", "RESHARDING", "ALLREDUCE", "H2D", "D2H", "BROADCAST", "ALLTOALL", "P2P", "OTHER_COLL",
  "D2D", "REDUCE", "H2H", "MANAGED", "EP"];
const colourOf = (bucket) => COLOURS[Math.max(0, BUCKETS.indexOf(bucket)) % COLOURS.length];
const PARTS = { compute: "#009e73", hidden: "#56b4e9", exposed: "#d55e00", waiting: "#cc79a7", unmet: "#e69f00", idle: "#9aa0a8" };
const ink = (name) => getComputedStyle(root).getPropertyValue(name).trim();
// From little to much; the ends stand out from the page in light and in dark.
function heatColour(x) {
  const stops = isDark()
    ? [[34, 44, 66], [58, 82, 139], [33, 144, 141], [160, 210, 60], [253, 231, 37]]
    : [[237, 243, 250], [158, 202, 225], [253, 190, 90], [227, 92, 40], [128, 0, 38]];
  const at = Math.min(3.9999, Math.max(0, x) * 4);
  const [a, b, part] = [stops[Math.floor(at)], stops[Math.floor(at) + 1], at % 1];
  return `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * part)).join(",")})`;
}

// The round numbers from `least` to `most`, about `n` of them.
function ticks(least, most, n = 4) {
  const rough = Math.max((most - least) / n, 1);
  const ten = 10 ** Math.floor(Math.log10(rough));
  const every = [1, 2, 5, 10].map((m) => m * ten).find((step) => step >= rough);
  const all = [];
  for (let i = Math.ceil(least / every); i * every <= most; ++i) all.push(i * every);
  return all;
}
// The figures leave out the first step: what has it in its first bin sets no scale by that.
const setsScale = (bin, bins) => data.step.first_counts || bin > 0 || bins === 1;
const most = (values) => values.reduce((a, b) => Math.max(a, b ?? 0), 0);

// ---- Drawing again: when the width, or light and dark change

const drawings = [];
function drawn(draw) {
  drawings.push(draw);
  draw();
}
let waiting = null;
function drawAll() {
  clearTimeout(waiting);
  waiting = setTimeout(() => drawings.forEach((draw) => draw()), 100);
}
addEventListener("resize", drawAll);
dark.addEventListener("change", drawAll);
for (const [event, paper] of [["beforeprint", true], ["afterprint", false]]) {
  addEventListener(event, () => {
    root.classList.toggle("paper", paper);
    drawings.forEach((draw) => draw());
  });
}
Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;

// A chart that is made anew by each draw.
function chart(parent, label, options) {
  const canvas = make("canvas", { role: "img", "aria-label": label });
  parent.append(make("div", { class: "chart" }, canvas));
  let made = null;
  const draw = () => {
    Chart.defaults.color = ink("--ink");
    Chart.defaults.borderColor = ink("--line");
    if (made) made.destroy();
    made = new Chart(canvas, options());
  };
  drawn(draw);
  return draw;
}

const tip = document.getElementById("tip");
function showTip(text, x, y) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = (y + tip.offsetHeight + 24 > innerHeight ? y - tip.offsetHeight - 10 : y + 16) + "px";
}

// A canvas of our own, whose cells can be pointed at, and walked over with the arrow keys.
// at(x, y): what to say there; cells: [columns, rows] to walk; place(column, row): its middle.
function canvas(parent, label, height, draw, { at, cells, place }) {
  const element = make("canvas", { class: "own", tabindex: 0, role: "img", "aria-label": label });
  parent.append(element);
  let cursor = [0, 0];
  const paint = (mark) => {
    const [wide, high] = [element.clientWidth || 600, height()];
    const scale = devicePixelRatio || 1;
    element.width = wide * scale;
    element.height = high * scale;
    element.style.height = high + "px";
    const c = element.getContext("2d");
    c.scale(scale, scale);
    c.font = "12px " + Chart.defaults.font.family;
    draw(c, wide, high);
    if (!mark) return;
    c.strokeStyle = ink("--focus");
    c.lineWidth = 2;
    c.strokeRect(mark[0] - 6, mark[1] - 6, 12, 12);
  };
  element.addEventListener("mousemove", (e) => showTip(at(e.offsetX, e.offsetY), e.clientX, e.clientY));
  element.addEventListener("mouseleave", () => showTip(""));
  element.addEventListener("blur", () => { showTip(""); paint(); });
  element.addEventListener("keydown", (e) => {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
    if (!move) return;
    e.preventDefault();
    const most = cells();
    cursor = cursor.map((v, i) => Math.min(most[i] - 1, Math.max(0, v + move[i])));
    const [x, y] = place(...cursor);
    paint([x, y]);
    const box = element.getBoundingClientRect();
    showTip(at(x, y), box.left + x, box.top + y);
  });
  drawn(() => paint());
  return paint;
}

// Cells of colour in rows and columns, with their names beside them. colour(column, row): undefined leaves it out.
// `columns` and `rows` are their names; at(column, row): what to say there.
function cells(parent, label, { columns, rows, titles = ["", ""], left, high, gap, colour, at }) {
  const below = titles[0] ? 34 : 20;
  let wide = 600;
  const tall = () => high * rows.length;
  const size = () => [(wide - left) / columns.length, high];
  return canvas(parent, label, () => tall() + below, (c, w) => {
    wide = w;
    const [cw, ch] = size();
    rows.forEach((_, r) => columns.forEach((__, k) => {
      const ink = colour(k, r);
      if (ink === undefined) return;
      c.fillStyle = ink;
      const apart = Math.min(cw, ch) > 6 ? 1 : 0;
      c.fillRect(left + k * cw, r * ch + gap, cw - apart + (apart ? 0 : 0.5), ch - 2 * gap - apart + (apart ? 0 : 0.5));
    }));
    c.fillStyle = ink("--ink");
    c.textBaseline = "middle";
    c.textAlign = "right";
    const every = (n, room) => Math.ceil(n / Math.max(1, Math.floor(room)));
    for (let r = 0; r < rows.length; r += every(rows.length, tall() / 18)) {
      c.fillText(rows[r], left - 6, (r + 0.5) * ch, left - 8);
    }
    c.textBaseline = "top";
    c.textAlign = "center";
    for (let k = 0; k < columns.length; k += every(columns.length, (w - left) / 56)) {
      c.fillText(columns[k], left + (k + 0.5) * cw, tall() + 4);
    }
    c.fillText(titles[0], left + (w - left) / 2, tall() + 18);
    c.textAlign = "left";
    c.fillText(titles[1], 0, tall() + 4);
  }, {
    cells: () => [columns.length, rows.length],
    place: (k, r) => [left + (k + 0.5) * size()[0], (r + 0.5) * high],
    at: (x, y) => {
      const [k, r] = [Math.floor((x - left) / size()[0]), Math.floor(y / high)];
      return k >= 0 && k < columns.length && r >= 0 && r < rows.length ? at(k, r) : "";
    },
  });
}

// ---- Tables that can be sorted. columns: [title, key, unit]

function table(caption, columns, rows, most) {
  const body = make("tbody");
  const more = make("button", { type: "button", onclick: () => fill(Infinity) });
  let [by, down] = [null, true];
  const figures = ([, , unit]) => unit !== "text";
  const titles = columns.map((column, i) => {
    const button = make("button", { type: "button", onclick: () => sort(i) }, column[0]);
    return make("th", { class: figures(column) ? "n" : null, scope: "col", "aria-sort": "none" }, button);
  });
  function fill(shown) {
    body.replaceChildren(...rows.slice(0, shown).map((row) => make("tr", {}, ...columns.map((column) => {
      const text = FORMATS[column[2]](row[column[1]], row);
      return make("td", { class: figures(column) ? "n" : text.length > 40 ? "long" : null }, text);
    }))));
    more.textContent = `all ${rows.length} rows`;
    more.hidden = rows.length <= shown;
  }
  function sort(i) {
    const key = columns[i][1];
    down = by === i ? !down : figures(columns[i]);
    by = i;
    const rank = (v) => (v === null || v === undefined ? -Infinity : v);
    rows = [...rows].sort((a, b) => {
      const order = figures(columns[i]) ? rank(a[key]) - rank(b[key])
        : String(a[key] ?? "").localeCompare(String(b[key] ?? ""), "en", { numeric: true });
      return down ? -order || 0 : order || 0;
    });
    titles.forEach((th, n) => th.setAttribute("aria-sort", n !== i ? "none" : down ? "descending" : "ascending"));
    fill(more.hidden ? Infinity : most);
  }
  fill(most);
  return make("div", {}, make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    make("table", { class: columns.length > 9 ? "dense" : null }, make("caption", { hidden: "" }, caption),
      make("thead", {}, make("tr", {}, ...titles)), body)), more);
}

// The tables of a section. Columns in which no row says anything are left out.
function showTables(id) {
  for (const t of data.tables.filter((one) => one.section === id)) {
    const rows = t.rows.slice(1).split("/").reduce((of, key) => of[key], data);
    for (const sentence of t.lead) say(id, sentence);
    if (!rows.length) continue;
    if (t.title !== section(id).querySelector("h2").textContent) section(id).append(make("h3", {}, t.title));
    section(id).append(table(t.title, t.columns.filter(([, key]) => rows.some((r) => words(r[key]) !== "–")), rows, 20));
    for (const sentence of t.notes) note(id, sentence);
  }
}
