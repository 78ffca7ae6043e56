// The sections of the page that are of calls, communicators and what was not seen.
"use strict";

function showBuckets() {
  showTables("buckets");
  const { bins, measures } = data.per_rank;
  const names = { bytes: "bytes", calls: "calls", host_ns: "time in calls on the host", device_ns: "time on the device" };
  const format = (x) => ({ bytes, calls: count }[measure] || duration)(x);
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
        label: (t) => `${t.dataset.label}: ${format(t.parsed.y)}`,
        footer: (t) => (grouped ? `of a rank: ${format(measures[measure].least[t[0].dataIndex])} to ` +
          format(measures[measure].most[t[0].dataIndex]) : "") } } },
      scales: { x: { stacked: true, grid: { display: false }, title: { display: true, text: "rank" },
        ticks: { maxRotation: 0, callback: (v) => bins[v][0] } },
        y: { stacked: true, ticks: { callback: (v) => format(v),
          stepSize: measure === "bytes" ? 2 ** Math.ceil(Math.log2(most() / 6)) : undefined } } } },
  }));
  if (grouped) note("buckets", `Each bar is the mean of about ${bins[0][1] - bins[0][0] + 1} ranks; point at it for the least and the most.`);
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
  showTables("comms");
  if (!families.length) return;
  const roles = (f) => `${f.role || "role not known"}, ${f.nranks} ranks`;
  section("comms").append(make("h3", {}, "Which ranks are in which"));
  cells(section("comms"), "Map of the communicators, a row for each kind; walk with the arrow keys", {
    columns: ranks, rows: families.map(roles), left: 150, high: 26, gap: 3,
    colour: (k, r) => (families[r].of_bin[k] < 0 ? ink("--panel") : COLOURS[families[r].of_bin[k] % 8]),
    at: (k, r) => {
      const [family, n] = [families[r], families[r].of_bin[k]];
      return `${roles(family)}\n${range([ranks[k], (ranks[k + 1] ?? ranks[k] + 1) - 1], "rank")}: ` +
        (n < 0 ? "in none" : `communicator ${n + 1} of ${family.n}${family.ids[n] ? ", " + family.ids[n] : ""}`);
    },
  });
  note("comms", "Ranks of one colour in a row are in one communicator; colours come again after eight." +
    (ranks.length < data.run.ranks ? " Neighbours share a place, which shows one of them." : "") +
    (data.comms.left_out ? ` ${count(data.comms.left_out)} more kinds are left out.` : ""));
}

for (const [id, show] of Object.entries({ run: showRun, findings: showFindings, step: showStep, heat: showHeat,
  late: showTables, timeline: showTimeline, buckets: showBuckets, ops: showTables, waits: showTables, hist: showHistograms,
  comms: showCommunicators, unseen: showTables })) {
  try {
    show(id);
  } catch (error) {  // the other sections say what they have all the same
    console.error(error);
    say(id, "This part could not be drawn: " + error.message);
  }
}
root.dataset.drawn = "yes";
