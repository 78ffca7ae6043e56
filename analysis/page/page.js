// The page of `tprof report`. Names come from traces: they become text, never markup.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");

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
const words = (x) => (x === null || x === undefined || x === "" ? "–" : String(x));
const range = ([first, last], what) => (first === last ? `${what} ${first}` : `${what}s ${first}–${last}`);
const FORMATS = { bytes, calls: count, host_ns: duration, device_ns: duration };

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
  "#a6761d", "#66a61e", "#e7298a", "#1b9e77"];
const BUCKETS = ["ALLGATHER", "RESHARDING", "ALLREDUCE", "H2D", "D2H", "BROADCAST", "ALLTOALL", "P2P", "OTHER_COLL",
  "D2D", "REDUCE", "H2H", "MANAGED"];
const colourOf = (bucket) => COLOURS[Math.max(0, BUCKETS.indexOf(bucket)) % COLOURS.length];
const PARTS = { compute: "#009e73", hidden: "#56b4e9", exposed: "#d55e00", idle: "#9aa0a8" };
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// From little to much; the ends stand out from the page in light and in dark.
function heatColour(x) {
  const stops = dark.matches
    ? [[34, 44, 66], [58, 82, 139], [33, 144, 141], [160, 210, 60], [253, 231, 37]]
    : [[237, 243, 250], [158, 202, 225], [253, 190, 90], [227, 92, 40], [128, 0, 38]];
  const at = Math.min(3.9999, Math.max(0, x) * 4);
  const [a, b, part] = [stops[Math.floor(at)], stops[Math.floor(at) + 1], at % 1];
  return `rgb(${a.map((v, i) => Math.round(v + (b[i] - v) * part)).join(",")})`;
}

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

// ---- Tables that can be sorted. columns: [title, key, format, is a number, is long]

function table(caption, columns, rows, most = 50) {
  const body = make("tbody");
  const more = make("button", { type: "button", onclick: () => fill(Infinity) });
  let [by, down] = [null, true];
  const titles = columns.map(([title, key, , number], i) => {
    const button = make("button", { type: "button", onclick: () => sort(i) }, title);
    return make("th", { class: number ? "n" : null, scope: "col", "aria-sort": "none" }, button);
  });
  function fill(shown) {
    body.replaceChildren(...rows.slice(0, shown).map((row) => make("tr", {},
      ...columns.map(([, key, format, number, long]) =>
        make("td", { class: number ? "n" : long ? "long" : null }, (format || words)(row[key], row))))));
    more.textContent = `all ${rows.length} rows`;
    more.hidden = rows.length <= shown;
  }
  function sort(i) {
    const [, key, , number] = columns[i];
    down = by === i ? !down : Boolean(number);
    by = i;
    const rank = (v) => (v === null || v === undefined ? -Infinity : v);
    rows = [...rows].sort((a, b) => {
      const order = number ? rank(a[key]) - rank(b[key])
        : String(a[key] ?? "").localeCompare(String(b[key] ?? ""), "en", { numeric: true });
      return down ? -order || 0 : order || 0;
    });
    titles.forEach((th, n) => th.setAttribute("aria-sort", n !== i ? "none" : down ? "descending" : "ascending"));
    fill(more.hidden ? Infinity : most);
  }
  fill(most);
  return make("div", {}, make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    make("table", {}, make("caption", { hidden: "" }, caption), make("thead", {}, make("tr", {}, ...titles)), body)),
    more);
}

// ---- Sections

function showRun() {
  const run = data.run;
  document.title = "tprof report: " + run.label;
  document.getElementById("version").textContent = data.tprof;
  const when = new Date(run.from_ns / 1e6).toISOString().slice(0, 19).replace("T", " ") + " UTC";
  const hosts = run.host_count === 1 ? run.hosts[0].name : `${count(run.host_count)} hosts`;
  const of = run.world_size && run.world_size !== run.ranks ? ` of ${count(run.world_size)}` : "";
  document.getElementById("run").textContent =
    [`run ${run.label}`, run.command, `${count(run.ranks)}${of} ranks on ${hosts}`, when, duration(run.dur_ns)]
      .filter(Boolean).join(" · ");
  const nav = document.querySelector("nav");
  for (const s of document.querySelectorAll("main section")) {
    nav.append(make("a", { href: "#" + s.id }, s.querySelector("h2").textContent));
  }
}

function showFindings() {
  if (!data.findings.length) return say("findings", "None: nothing is missing, and all ranks did the same.");
  for (const f of data.findings) {
    const parts = [make("p", {}, make("span", { class: "tag" }, f.severity + ": "), f.text)];
    if (f.cost) {
      const step = f.cost.ns_per_step === null ? "" : `, ${duration(f.cost.ns_per_step)} of each step`;
      parts.push(make("p", {}, `Cost: ${duration(f.cost.ns)}, ${percent(f.cost.share)} of the time${step}` +
        (f.cost.doubt_ns ? ` (± ${duration(f.cost.doubt_ns)})` : "") + "."));
    }
    if (f.evidence.length) parts.push(make("ul", {}, ...f.evidence.map((e) => make("li", {}, e))));
    if (f.next) parts.push(make("p", {}, "→ " + f.next));
    section("findings").append(make("div", { class: "finding " + f.severity }, ...parts));
  }
}

function showStep() {
  const { step } = data;
  if (!step.steps) return say("step", `No steps are known: ${step.why}. Mark them: TPROF_STEP, or NVTX ranges.`);
  const figure = (name, value) => make("div", {}, make("b", {}, value), name);
  section("step").append(make("div", { class: "figures" },
    figure("a typical step", duration(step.typical_ns)),
    figure("the slowest", duration(step.most_ns)),
    figure("the fastest", duration(step.least_ns)),
    figure(step.found.trim().replace(/\.$/, "").split(". ")[0] || "steps", count(step.steps)),
    figure("exposed communication", percent(step.exposed_share))));
  if (step.parts) {
    const p = step.parts;
    const shares = [["compute", p.compute_ns - p.hidden_ns, "computation alone"],
      ["hidden", p.hidden_ns, "communication hidden behind it"], ["exposed", p.exposed_ns, "exposed communication"],
      ["idle", p.idle_ns, "neither: waiting for the host"]];
    const bar = make("div", { class: "parts", role: "img" });
    bar.setAttribute("aria-label", shares.map(([, ns, text]) => `${text} ${duration(ns)}`).join(", "));
    for (const [name, ns] of shares) {
      const part = make("span");
      part.style.flex = Math.max(0, ns) + " 0 0";
      part.style.background = PARTS[name];
      bar.append(part);
    }
    section("step").append(bar, legend(shares.map(([name, ns, text]) =>
      [`${text}: ${duration(ns)} (${percent(ns / p.length_ns)})`, PARTS[name]])));
  } else {
    say("step", `Computation, hidden and exposed communication and waiting: ${step.parts_why}`);
  }
  if (step.steps < 2) return;
  chart(section("step"), "Length of each step, of its slowest rank", () => ({
    type: step.steps > 60 ? "line" : "bar",
    data: { labels: step.bins.map((b) => (b[0] === b[1] ? b[0] : `${b[0]}–${b[1]}`)),
      datasets: [{ label: "the slowest rank", data: step.longest_ns, backgroundColor: "#0072b2",
        borderColor: "#0072b2", borderWidth: step.steps > 60 ? 1.5 : 0, pointRadius: 0, maxBarThickness: 48 }] },
    options: { plugins: { legend: { display: false },
        tooltip: { callbacks: { title: (t) => "step " + t[0].label, label: (t) => duration(t.parsed.y) } } },
      scales: { x: { title: { display: true, text: "step" }, grid: { display: false } },
        y: { beginAtZero: true, ticks: { callback: (v) => duration(v) } } } },
  }));
  note("step", "The length of each step, of the rank for which it took longest. The first is left out of the figures.");
}

function showHeat() {
  const { heat } = data;
  if (heat.why) return say("heat", heat.why);
  let metric = heat.metrics[0];
  const [left, top, bottom] = [64, 6, 34];
  const [columns, rows] = [heat.columns.length, heat.rows.length];
  let most = 1;
  let least = 0;
  let wide = 600;
  const tall = () => Math.max(60, Math.min(rows * 22, Math.max(rows * 2, 420)));
  const scale = () => {
    const known = metric.most.filter((v) => v !== null);
    most = known.reduce((a, b) => Math.max(a, b), 0);
    // Lengths of steps are alike: their colours begin at the shortest.
    least = metric.key === "length_ns" ? known.reduce((a, b) => Math.min(a, b), most) : 0;
  };
  const lines = make("div", { class: "legend" });
  const describe = () => {
    scale();
    lines.replaceChildren(...[0, 0.25, 0.5, 0.75, 1].map((x) => {
      const dot = make("i");
      dot.style.background = heatColour(x);
      return make("span", {}, dot, duration(least + x * (most - least)));
    }));
  };
  const cellAt = (x, y) => {
    const column = Math.floor((x - left) / ((wide - left) / columns));
    const row = Math.floor((y - top) / (tall() / rows));
    return column >= 0 && column < columns && row >= 0 && row < rows ? [column, row] : null;
  };
  const paint = () => {
    describe();
    repaint();
  };
  const controls = make("div", { class: "controls" });
  if (heat.metrics.length > 1) {
    controls.append(choice("Colour:", heat.metrics.map((m) => m.title), (i) => { metric = heat.metrics[i]; paint(); }));
  } else {
    controls.append(metric.title);
  }
  section("heat").append(controls, lines);
  const repaint = canvas(section("heat"), `Heat map of ${rows} rows of ranks and ${columns} columns of steps; walk with the arrow keys`,
    () => tall() + top + bottom, (c, w) => {
      describe();
      wide = w;
      const [cw, ch] = [(w - left) / columns, tall() / rows];
      for (let r = 0; r < rows; ++r) {
        for (let k = 0; k < columns; ++k) {
          const value = metric.most[r * columns + k];
          if (value === null) continue;
          c.fillStyle = heatColour(most > least ? (value - least) / (most - least) : 0);
          const gap = Math.min(cw, ch) > 6 ? 1 : 0;
          c.fillRect(left + k * cw, top + r * ch, cw - gap + (gap ? 0 : 0.5), ch - gap + (gap ? 0 : 0.5));
        }
      }
      c.fillStyle = ink("--ink");
      c.textBaseline = "middle";
      c.textAlign = "right";
      const every = Math.ceil(rows / Math.max(1, Math.floor(tall() / 18)));
      for (let r = 0; r < rows; r += every) c.fillText(heat.rows[r][0], left - 6, top + (r + 0.5) * ch);
      c.textBaseline = "top";
      const step = Math.ceil(columns / Math.max(1, Math.floor((w - left) / 56)));
      c.textAlign = "center";
      for (let k = 0; k < columns; k += step) {
        c.fillText(heat.columns[k][0], left + (k + 0.5) * cw, top + tall() + 4);
      }
      c.textAlign = "left";
      c.fillText("rank", 0, top + tall() + 4);
      c.textAlign = "center";
      c.fillText("step", left + (w - left) / 2, top + tall() + 18);
    }, {
      cells: () => [columns, rows],
      place: (k, r) => [left + (k + 0.5) * (wide - left) / columns, top + (r + 0.5) * tall() / rows],
      at: (x, y) => {
        const cell = cellAt(x, y);
        if (!cell) return "";
        const at = cell[1] * columns + cell[0];
        const where = `${range(heat.rows[cell[1]], "rank")}, ${range(heat.columns[cell[0]], "step")}`;
        if (metric.most[at] === null) return where + "\nnot known";
        const one = metric.least[at] === metric.most[at];
        return `${where}\n${metric.title}: ${duration(metric.most[at])}` +
          (one ? "" : ` at most (rank ${metric.worst[at]}), ${duration(metric.least[at])} at least`);
      },
    });
  const width = heat.rows[0][1] - heat.rows[0][0] + 1;
  note("heat", (width > 1 ? `Each row is about ${width} ranks: the worst of them is shown. ` : "") +
    "Point at a cell, or walk with the arrow keys, for its ranks and steps.");
}

function showLate() {
  const { late } = data;
  if (!late.compared) {
    return say("late", "Not known: no collective has event lines of several ranks whose clocks can be compared" +
      " (TPROF_EVENTS=on for lines, TPROF_TIMING=events across hosts).");
  }
  if (!late.ranks.length) {
    return say("late", `In ${count(late.compared)} collectives nobody came later than the rest by more than the clocks tell.`);
  }
  section("late").append(table("Ranks that came last",
    [["rank", "rank"], ["host", "host"], ["waited for", "sum_ns", duration, true], ["of the time", "share", percent, true],
      ["came last to", "last", count, true], ["of", "of", count, true], ["median", "median_ns", duration, true],
      ["at most", "max_ns", duration, true]], late.ranks, 10),
  make("h3", {}, "By communicator and step"),
  table("Waiting by rank, communicator and step",
    [["rank", "rank"], ["host", "host"], ["communicator", "communicator"], ["role", "role"], ["step", "step", words, true],
      ["times", "times", count, true], ["waited for", "ns", duration, true]], late.where, 10));
  note("late", `How long nobody else was waited for, by ${late.from === "device" ? "the devices' times" : "the hosts' calls"}; ` +
    `${count(late.compared)} of ${count(late.collectives)} collectives were compared. The step is the one in which the rank came.`);
}

function showTimeline() {
  if (!data.timelines.length) return say("timeline", "No steps are known, so that none can be shown.");
  let t = data.timelines[0];
  const [left, row, top] = [90, 20, 4];
  let wide = 600;
  let [from, to] = [0, t.length_ns];
  const x = (ns) => left + (ns - from) / (to - from) * (wide - left - 6);
  const lines = make("div");
  const describe = () => {
    const buckets = [...new Set(t.names.map((n) => n.bucket))];
    lines.replaceChildren(legend(buckets.map((b) => [b, colourOf(b)])), make("p", { class: "quiet" },
      `Step ${t.step}, by the times of the ${t.on === "device" ? "devices" : "hosts' calls"}; ${t.ranks.length} of ` +
      `${count(data.run.ranks)} ranks${t.left_out ? `; ${count(t.left_out)} shorter or untimed calls are left out` : ""}.`));
  };
  const set = (a, b) => { [from, to] = [Math.max(0, a), Math.min(t.length_ns, b)]; repaint(); };
  const zoom = (by) => { const [mid, half] = [(from + to) / 2, (to - from) / 2 * by]; set(mid - half, mid + half); };
  const shift = (by) => {
    const far = Math.max(-from, Math.min(t.length_ns - to, (to - from) * by));
    set(from + far, to + far);
  };
  const button = (text, label, act) => make("button", { type: "button", "aria-label": label, onclick: act }, text);
  section("timeline").append(make("div", { class: "controls" },
    choice("Step:", data.timelines.map((l) => `${l.which}: ${l.step} (${duration(l.length_ns)})`), (i) => {
      t = data.timelines[i];
      describe();
      set(0, t.length_ns);
    }),
    button("+", "zoom in", () => zoom(0.5)), button("−", "zoom out", () => zoom(2)),
    button("←", "earlier", () => shift(-0.25)), button("→", "later", () => shift(0.25)),
    button("whole step", "whole step", () => set(0, t.length_ns))), lines);
  const barAt = (px, py) => {
    const rank = t.ranks[Math.floor((py - top) / row)];
    if (!rank || px < left) return null;
    return [rank, rank.bars.findLast(([, at, dur]) => px >= x(at) - 1 && px <= Math.max(x(at + dur), x(at) + 2))];
  };
  describe();
  const repaint = canvas(section("timeline"), "Timeline of one step, a row for each rank; walk with the arrow keys",
    () => t.ranks.length * row + top + 22, (c, w, h) => {
      wide = w;
      const every = Math.max(1, Math.floor((w - left) / 110));
      c.textBaseline = "top";
      c.textAlign = "center";
      for (let i = 0; i <= every; ++i) {
        const ns = from + (to - from) * i / every;
        c.fillStyle = ink("--line");
        c.fillRect(x(ns), top, 1, h - 22 - top);
        c.fillStyle = ink("--quiet");
        c.textAlign = i === every ? "right" : i === 0 ? "left" : "center";
        c.fillText(duration(ns), x(ns), h - 16);
      }
      t.ranks.forEach((r, i) => {
        const y = top + i * row;
        c.fillStyle = ink("--panel");
        const [a, b] = [Math.max(left, x(r.from)), Math.min(w, x(r.to))];
        if (b > a) c.fillRect(a, y + 1, b - a, row - 2);
        for (const [name, at, dur] of r.bars) {
          const [begin, end] = [Math.max(left, x(at)), Math.min(w, x(at + dur))];
          if (end < left || begin > w || end < begin) continue;
          c.fillStyle = colourOf(t.names[name].bucket);
          c.fillRect(begin, y + 3, Math.max(1, end - begin - (end - begin > 3 ? 0.5 : 0)), row - 6);
        }
        c.fillStyle = ink("--ink");
        c.textAlign = "right";
        c.textBaseline = "middle";
        c.fillText(r.rank.length > 12 ? r.rank.slice(0, 11) + "…" : r.rank, left - 8, y + row / 2);
      });
    }, {
      cells: () => [60, t.ranks.length],
      place: (k, r) => [left + (k + 0.5) * (wide - left) / 60, top + (r + 0.5) * row],
      at: (px, py) => {
        const found = barAt(px, py);
        if (!found) return "";
        const [rank, bar] = found;
        if (!bar) return rank.rank;
        const [name, at, dur, size] = bar;
        const n = t.names[name];
        return `${rank.rank}: ${n.name}, ${bytes(size)}\n${duration(dur)} from ${duration(at)} on` +
          (n.communicator ? `\ncommunicator ${n.communicator}` : "");
      },
    });
}

function showBuckets() {
  if (!data.buckets.length) return say("buckets", "No call that counts.");
  const exposed = (ns, b) => (ns === null ? "–" : `${duration(ns)} (${percent(ns / b.exposure_known_ns)})`);
  section("buckets").append(table("Bytes and calls of each bucket",
    [["bucket", "bucket"], ["calls", "calls", count, true], ["elements", "elements", count, true],
      ["bytes", "bytes", bytes, true], ["host time", "host_ns", duration, true],
      ["device time", "device_ns", duration, true], ["exposed", "exposed_ns", exposed, true]], data.buckets));
  const { bins, measures } = data.per_rank;
  const names = { bytes: "bytes", calls: "calls", host_ns: "time in calls on the host", device_ns: "time on the device" };
  const known = Object.keys(measures);
  if (!bins.length || !known.length) return;
  let measure = known[0];
  const grouped = bins.some(([first, last]) => first !== last);
  section("buckets").append(make("h3", {}, "By rank"), make("div", { class: "controls" },
    choice("Show:", known.map((k) => names[k]), (i) => { measure = known[i]; draw(); })));
  const draw = chart(section("buckets"), "Buckets of each rank", () => ({
    type: "bar",
    data: { labels: bins.map(([a, b]) => (a === b ? a : `${a}–${b}`)),
      datasets: Object.entries(measures[measure].buckets).map(([bucket, values]) => ({ label: bucket, data: values,
        backgroundColor: colourOf(bucket), stack: "all", categoryPercentage: 1, barPercentage: bins.length > 40 ? 1 : 0.9,
        maxBarThickness: 60 })) },
    options: { interaction: { mode: "index", intersect: false },
      plugins: { legend: { position: "bottom", labels: { boxWidth: 12 } }, tooltip: { callbacks: {
        title: (t) => "rank" + (grouped ? "s " : " ") + t[0].label,
        label: (t) => `${t.dataset.label}: ${FORMATS[measure](t.parsed.y)}`,
        footer: (t) => (grouped ? `of a rank: ${FORMATS[measure](measures[measure].least[t[0].dataIndex])} to ` +
          FORMATS[measure](measures[measure].most[t[0].dataIndex]) : "") } } },
      scales: { x: { stacked: true, grid: { display: false }, title: { display: true, text: "rank" } },
        y: { stacked: true, ticks: { callback: (v) => FORMATS[measure](v) } } } },
  }));
  if (grouped) note("buckets", `Each bar is the mean of about ${bins[0][1] - bins[0][0] + 1} ranks; point at it for the least and the most.`);
}

function showOperations() {
  if (!data.ops.length) return say("ops", "No call that counts.");
  const timed = data.ops.some((o) => o.device_ns !== null);
  const rows = data.ops.map((o) => ({ ...o, mean: o.device_timed ? o.device_ns / o.device_timed : null,
    host_mean: o.calls ? o.host_ns / o.calls : null }));
  const size = (class_, o) => o.size;
  const columns = [["bucket", "bucket"], ["operation", "name"], ["size", "bytes_class", size, true], ["type", "dtype"],
    ["role", "role"], ["ranks", "nranks", words, true], ["calls", "calls", count, true], ["bytes", "bytes", bytes, true]];
  if (timed) {
    columns.push(["device time", "device_ns", duration, true], ["mean", "mean", duration, true],
      ["at most", "device_ns_max", duration, true], ["exposed", "exposed_ns", duration, true],
      ["algbw GB/s", "algbw", rate, true], ["busbw GB/s", "busbw", rate, true]);
  } else {
    columns.push(["host time", "host_ns", duration, true], ["mean", "host_mean", duration, true],
      ["at most", "host_ns_max", duration, true]);
  }
  section("ops").append(table("Operations by size", columns, rows, 30));
  note("ops", timed ? "The longest first; a click on a title sorts. role?: a guess, from what was sent in which pass."
    : "Host time is the time to enqueue. Device times and bandwidths: TPROF_TIMING=events.");
}

function showHistograms() {
  if (!data.hist.length) return say("hist", "No call has an event line: TPROF_EVENTS=on.");
  let h = data.hist[0];
  section("hist").append(make("div", { class: "controls" }, choice("Operation:",
    data.hist.map((o) => `${o.name} ${o.size} (${count(o.calls)} calls)`), (i) => { h = data.hist[i]; draw(); })));
  const draw = chart(section("hist"), "Histogram of durations", () => ({
    type: "bar",
    data: { labels: h.counts.map((n, i) => duration(h.edges_ns[i])),
      datasets: [{ data: h.counts, backgroundColor: colourOf(h.bucket), categoryPercentage: 1, barPercentage: 0.98,
        maxBarThickness: 60 }] },
    options: { plugins: { legend: { display: false },
        title: { display: true, text: `${h.name} ${h.size}: mean ${duration(h.mean_ns)} on the ${h.on}`, font: { weight: "normal" } },
        tooltip: { callbacks: {
          title: (t) => `${duration(h.edges_ns[t[0].dataIndex])} to ${duration(h.edges_ns[t[0].dataIndex + 1])}`,
          label: (t) => count(t.parsed.y) + " calls" } } },
      scales: { x: { grid: { display: false }, title: { display: true, text: `time on the ${h.on}, from` } },
        y: { beginAtZero: true, title: { display: true, text: "calls" }, ticks: { precision: 0 } } } },
  }));
}

function showCommunicators() {
  const { families, ranks } = data.comms;
  if (!families.length) return say("comms", "No communicator was made.");
  const roles = (f) => `${f.role || "role not known"}, ${f.nranks} ranks`;
  section("comms").append(table("Kinds of communicators",
    [["role", "role"], ["ranks", "nranks", count, true], ["communicators", "n", count, true],
      ["collectives", "collectives", count, true], ["calls", "calls", count, true], ["bytes", "bytes", bytes, true],
      ["ids", "ids", (ids) => ids.slice(0, 3).join(", ") + (ids.length > 3 ? ", …" : ""), false, true]], families),
  make("h3", {}, "Which ranks are in which"));
  const [left, row] = [150, 26];
  let wide = 600;
  const at = (px, py) => {
    const family = families[Math.floor(py / row)];
    const k = Math.floor((px - left) / ((wide - left) / ranks.length));
    if (!family || k < 0 || k >= ranks.length) return "";
    const n = family.of_bin[k];
    return `${roles(family)}\n${range([ranks[k], (ranks[k + 1] ?? ranks[k] + 1) - 1], "rank")}: ` +
      (n < 0 ? "in none" : `communicator ${n + 1} of ${family.n}${family.ids[n] ? ", " + family.ids[n] : ""}`);
  };
  canvas(section("comms"), "Map of the communicators, a row for each kind; walk with the arrow keys",
    () => families.length * row + 20, (c, w) => {
      wide = w;
      const cw = (w - left) / ranks.length;
      families.forEach((f, i) => {
        c.fillStyle = ink("--ink");
        c.textAlign = "right";
        c.textBaseline = "middle";
        c.fillText(roles(f), left - 8, i * row + row / 2, left - 12);
        f.of_bin.forEach((n, k) => {
          c.fillStyle = n < 0 ? ink("--panel") : COLOURS[n % 8];
          c.fillRect(left + k * cw, i * row + 3, cw > 6 ? cw - 1 : cw + 0.4, row - 6);
        });
      });
      c.fillStyle = ink("--quiet");
      c.textBaseline = "top";
      const every = Math.ceil(ranks.length / Math.max(1, Math.floor((w - left) / 60)));
      c.textAlign = "center";
      for (let k = 0; k < ranks.length; k += every) c.fillText(ranks[k], left + (k + 0.5) * cw, families.length * row + 3);
    }, { at, cells: () => [ranks.length, families.length],
      place: (k, r) => [left + (k + 0.5) * (wide - left) / ranks.length, (r + 0.5) * row] });
  note("comms", "Ranks of one colour in a row are in one communicator; colours come again after eight." +
    (data.comms.left_out ? ` ${count(data.comms.left_out)} more kinds are left out.` : ""));
}

function showUnseen() {
  if (!data.unseen.length) return say("unseen", "Nothing that the files tell: every rank is there, closed, and every call has its line.");
  section("unseen").append(table("What was not seen",
    [["what", "what", words, false, true], ["how many", "n", count, true], ["ranks", "ranks", words, false, true]],
    data.unseen));
}

showRun();
showFindings();
showStep();
showHeat();
showLate();
showTimeline();
showBuckets();
showOperations();
showHistograms();
showCommunicators();
showUnseen();
document.documentElement.dataset.drawn = "yes";
