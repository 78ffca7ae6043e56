// The sections of the page that are of findings, ranks and steps, each from its part of the data
// (analysis/report/README.md).
"use strict";

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

const kMostSteps = 40; // or ranges of them, that are listed

function showFindings() {
  const top = data.verdict.finding; // its text is the headline
  if (!data.findings.length) say("findings", "None: nothing is missing, and all ranks did the same.");
  else if (top !== null && data.findings.length === 1) say("findings", "None but the one above.");
  data.findings.forEach((f, i) => {
    const parts = i === top ? [] : [make("p", {}, make("span", { class: "tag" }, f.severity + ": "), f.text)];
    if (f.cost) {
      const step = f.cost.ns_per_step === null ? "" : `, ${duration(f.cost.ns_per_step)} of each step`;
      const doubt = f.cost.doubt_ns ? ` ± ${duration(f.cost.doubt_ns)}` : "";
      parts.push(make("p", {}, `Cost: ${duration(f.cost.ns)}${doubt} in all, ${percent(f.cost.share)} of the time${step}.`));
    }
    const shortened = f.in_steps && !f.text.includes(f.in_steps) && f.in_steps.split(",").length <= kMostSteps;
    if (shortened) parts.push(make("p", {}, `Steps: ${f.in_steps}.`));
    if (f.evidence.length) parts.push(make("ul", {}, ...f.evidence.map((e) => make("li", {}, e))));
    if (f.next) parts.push(make("p", {}, "→ " + f.next));
    (i === top ? document.getElementById("verdict") : section("findings"))
      .append(make("div", { class: i === top ? "more" : "finding " + f.severity }, ...parts));
  });
}

function showStep() {
  const { step } = data;
  if (!step.steps) return say("step", `No steps are known: ${step.why}. Mark them: TPROF_STEP, or NVTX ranges.`);
  const figure = (name, value) => make("div", {}, make("b", {}, value), name);
  section("step").append(make("div", { class: "figures" },
    figure("a step, on average", duration(step.mean_ns)),
    figure("the median", duration(step.median_ns)),
    figure("the slowest", duration(step.most_ns)),
    figure("the fastest", duration(step.least_ns)),
    figure("steps" + (step.of_ranks ? ` of ranks ${step.of_ranks}` : "") + (step.counted < step.steps ? `, ${count(step.counted)} of them counted here` : ""), count(step.steps)),
    ...(step.exposed_share === null ? [] : [figure("exposed communication", percent(step.exposed_share))])));
  if (step.parts) {
    const bar = make("div", { class: "parts", role: "img" });
    bar.setAttribute("aria-label", step.shares.map(([, text, ns]) => `${text} ${duration(ns)}`).join(", "));
    for (const [name, , ns] of step.shares) {
      const part = make("span");
      part.style.flex = Math.max(0, ns) + " 0 0";
      part.style.background = PARTS[name];
      bar.append(part);
    }
    section("step").append(bar, legend(step.shares.map(([name, text, ns]) =>
      [`${text}: ${duration(ns)} (${percent(ns / step.parts.length_ns)})`, PARTS[name]])));
  } else {
    say("step", `Computation, hidden and exposed communication and waiting: ${step.parts_why}`);
  }
  if (step.causes_why) say("step", `Causes: not known: ${step.causes_why}`);
  if (step.steps < 2) return;
  const usual = most(step.longest_ns.filter((_, i) => setsScale(i, step.bins.length)));
  chart(section("step"), "Length of each step", () => ({
    type: step.steps > 60 ? "line" : "bar",
    data: { labels: step.bins.map((b) => (b[0] === b[1] ? b[0] : `${b[0]}–${b[1]}`)),
      datasets: [{ data: step.longest_ns, backgroundColor: "#0072b2",
        borderColor: "#0072b2", borderWidth: step.steps > 60 ? 1.5 : 0, pointRadius: 0, maxBarThickness: 48 }] },
    options: { plugins: { legend: { display: false },
        tooltip: { callbacks: { title: (t) => "step " + t[0].label, label: (t) => duration(t.parsed.y) } } },
      scales: { x: { title: { display: true, text: "step" }, grid: { display: false },
        ticks: { maxRotation: 0, callback: (v) => step.bins[v][0] } },
        y: { beginAtZero: true, max: ticks(0, 2 * usual, 8).find((v) => v >= usual), ticks: { callback: (v) => duration(v) } } } },
  }));
  note("step", "The length of each step: the mean of its ranks. " + (step.first_counts ? "" :
    `The first, ${duration(step.longest_ns[0])}, is left out of the figures and of the scale. `) + step.found);
}

function showHeat() {
  const { heat } = data;
  if (heat.why) return say("heat", heat.why);
  let metric = heat.metrics[0];
  let [low, high] = [0, 1];
  const [columns, rows] = [heat.columns.length, heat.rows.length];
  const colour = make("div", { class: "legend" });
  const scale = () => {
    const known = metric.most.filter((v, i) => v !== null && setsScale(i % columns, columns));
    high = most(known);
    // Lengths of steps are alike: their colours begin at the shortest.
    low = metric.key === "length_ns" ? known.reduce((a, b) => Math.min(a, b), high) : 0;
    colour.replaceChildren(...legend(ticks(low, high).map((ns) => [duration(ns), heatColour(place(ns))])).children);
  };
  const place = (ns) => (high > low ? (ns - low) / (high - low) : 0);
  section("heat").append(make("div", { class: "controls" }, heat.metrics.length > 1
    ? choice("Colour:", heat.metrics.map((m) => m.title), (i) => { metric = heat.metrics[i]; scale(); paint(); })
    : metric.title), colour);
  drawn(scale);
  const paint = cells(section("heat"), `Heat map of ${rows} rows of ranks and ${columns} columns of steps; walk with the arrow keys`, {
    columns: heat.columns.map((c) => c[0]), rows: heat.rows.map((r) => r[0]), titles: ["step", "rank"], left: 64,
    high: Math.max(60, Math.min(rows * 22, Math.max(rows * 2, 420))) / rows, gap: 0,
    colour: (k, r) => {
      const value = metric.most[r * columns + k];
      return value === null ? undefined : heatColour(place(value));
    },
    at: (k, r) => {
      const at = r * columns + k;
      const where = `${range(heat.rows[r], "rank")}, ${range(heat.columns[k], "step")}`;
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

function showTimeline() {
  if (!data.timelines.length) return say("timeline", "No steps are known, so that none can be shown.");
  let t = data.timelines[0];
  const [left, top] = [90, 4];
  const row = t.ranks.length > 32 ? 14 : 20;
  let wide = 600;
  let [from, to] = [0, t.span_ns];
  const x = (ns) => left + (ns - from) / (to - from) * (wide - left - 6);
  const lines = make("div");
  const describe = () => {
    const buckets = [...new Set(t.names.map((n) => n.bucket))];
    lines.replaceChildren(legend(buckets.map((b) => [b, colourOf(b)])), make("p", { class: "quiet" },
      `Step ${t.step}, by the times of the ${t.on === "device" ? "devices" : "hosts' calls"}: each rank's own begins and ends ` +
      `with the ground of its row, and a call that runs on from another step is cut there. ${t.ranks.length} of ${count(data.run.ranks)} ranks${t.left_out ? `; ${count(t.left_out)} shorter or untimed calls are left out` : ""}.` +
      (t.one_axis ? "" : " The hosts' clocks can't be compared: the step begins at 0 on each of them.")));
  };
  const set = (a, b) => { [from, to] = [Math.max(0, a), Math.min(t.span_ns, b)]; repaint(); };
  const zoom = (by) => { const [mid, half] = [(from + to) / 2, (to - from) / 2 * by]; set(mid - half, mid + half); };
  const shift = (by) => {
    const far = Math.max(-from, Math.min(t.span_ns - to, (to - from) * by));
    set(from + far, to + far);
  };
  const button = (text, label, act) => make("button", { type: "button", "aria-label": label, onclick: act }, text);
  section("timeline").append(make("div", { class: "controls" },
    choice("Step:", data.timelines.map((l) => `${l.which}: ${l.step} (${duration(l.length_ns)})`), (i) => {
      t = data.timelines[i];
      describe();
      set(0, t.span_ns);
    }),
    button("+", "zoom in", () => zoom(0.5)), button("−", "zoom out", () => zoom(2)),
    button("←", "earlier", () => shift(-0.25)), button("→", "later", () => shift(0.25)),
    button("whole step", "whole step", () => set(0, t.span_ns))), lines);
  const barAt = (px, py) => {
    const rank = t.ranks[Math.floor((py - top) / row)];
    if (!rank || px < left) return null;
    return [rank, rank.bars.findLast(([, at, dur]) => px >= x(at) - 1 && px <= Math.max(x(at + dur), x(at) + 2))];
  };
  describe();
  const repaint = canvas(section("timeline"), "Timeline of one step, a row for each rank; walk with the arrow keys",
    () => t.ranks.length * row + top + 22, (c, w, h) => {
      wide = w;
      c.textBaseline = "top";
      c.textAlign = "center";
      for (const ns of ticks(from, to, Math.max(1, Math.floor((w - left) / 110)))) {
        c.fillStyle = ink("--line");
        c.fillRect(x(ns), top, 1, h - 22 - top);
        c.fillStyle = ink("--quiet");
        c.textAlign = x(ns) > w - 40 ? "right" : "center";
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
          c.fillRect(begin, y + 2, Math.max(1, end - begin - (end - begin > 3 ? 0.5 : 0)), row - 4);
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
        const [name, at, dur, size, whole] = bar;
        const n = t.names[name];
        return `${rank.rank}: ${n.name}, ${bytes(size)}\n${duration(dur)}${whole ? ` of its ${duration(whole)}` : ""} from ${duration(at)} on` +
          (n.communicator ? `\ncommunicator ${n.communicator}` : "");
      },
    });
}
