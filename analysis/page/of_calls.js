// The sections of the page that are of calls, communicators and what was not seen.
"use strict";

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
  const most = () => Math.max(1, ...measures[measure].most);
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
      scales: { x: { stacked: true, grid: { display: false }, title: { display: true, text: "rank" },
        ticks: { maxRotation: 0, callback: (v) => bins[v][0] } },
        y: { stacked: true, ticks: { callback: (v) => FORMATS[measure](v),
          stepSize: measure === "bytes" ? 2 ** Math.ceil(Math.log2(most() / 6)) : undefined } } } },
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
  section("ops").append(table("Operations by size", columns, rows, 30, true));
  note("ops", timed ? "The longest first; a click on a title sorts. role?: a guess, from what was sent in which pass."
    : "Host time is the time to enqueue. Device times and bandwidths: TPROF_TIMING=events.");
}

function showWaits() {
  const { known, rows } = data.waits;
  if (!known) return say("waits", "Not known: no collective was timed on the devices of several ranks (TPROF_TIMING=events).");
  if (!rows.length) return say("waits", "It is not known of any call when the last rank came to it.");
  const last = (ranks, r) => (ranks.length ? `rank ${ranks[0].rank}: ${count(ranks[0].last)} of ${count(r.meetings)}, ` +
    `by ${duration(ranks[0].late_ns / ranks[0].last)}` : "–");
  const columns = [["bucket", "bucket"], ["size", "bytes_class", (c, r) => r.size, true], ["role", "role", words],
    ["ranks", "of"], ["calls", "calls", count, true], ["known", "known", count, true],
    ["wait", "wait_ns", duration, true], ["transfer", "transfer_ns", duration, true]];
  if (rows.some((r) => r.wait_ns_per_step !== null)) {
    columns.push(["wait/step", "wait_ns_per_step", duration, true], ["transfer/step", "transfer_ns_per_step", duration, true]);
  }
  columns.push(["busbw GB/s", "busbw_GBps", rate, true]);
  if (rows.some((r) => r.peak_share !== null)) columns.push(["of peak", "peak_share", percent, true]);
  columns.push(["came last most often", "ranks", last]);
  section("waits").append(table("Waiting for other ranks, and transfer", columns, rows, 20, true));
  note("waits", "Wait: until the last rank came, or the other end of a message; transfer: from then to the end. " +
    "Sums over the ranks; /step: of one rank in one step. busbw is that of the median transfer.");
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
    (ranks.length < data.run.ranks ? " Neighbours share a place, which shows one of them." : "") +
    (data.comms.left_out ? ` ${count(data.comms.left_out)} more kinds are left out.` : ""));
}

function showUnseen() {
  if (!data.unseen.length) return say("unseen", "Nothing that the files tell: every rank is there, closed, and every call has its line.");
  section("unseen").append(table("What was not seen",
    [["what", "what", words, false, true], ["how many", "n", count, true], ["ranks", "ranks", words, false, true]],
    data.unseen));
}

for (const [id, show] of Object.entries({ run: showRun, findings: showFindings, step: showStep, heat: showHeat,
  late: showLate, timeline: showTimeline, buckets: showBuckets, ops: showOperations, waits: showWaits, hist: showHistograms,
  comms: showCommunicators, unseen: showUnseen })) {
  try {
    show();
  } catch (error) {  // the other sections say what they have all the same
    console.error(error);
    say(id, "This part could not be drawn: " + error.message);
  }
}
root.dataset.drawn = "yes";
