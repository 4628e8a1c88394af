// The page: what is shown, how it answers to pointer and keys.
const id = name => document.getElementById(name);
const tip = id("tip"), pinned = id("pinned"), axis = id("axis");
let charts = [], queued = false, stale = false;

const shownTimelines = () => timelines.filter((_, i) => state.shown[i]);

// ---- drawing when something changed
function redraw(all = true) {
  stale ||= all;
  if (queued) return;
  queued = true;
  requestAnimationFrame(drawNow);
}
function drawNow() {
  if (stale) {
    readColours();
    for (const chart of charts) chart.measure();
    for (const chart of charts) chart.draw();
  }
  [queued, stale] = [false, false];
  drawAxis(axis);
  for (const chart of charts) chart.drawOver();
}
function build() {
  const host = id("charts"), shown = shownTimelines();
  host.replaceChildren();
  const measure = axis.getContext("2d");
  measure.font = font(12.5, 600);
  const widest = texts => Math.max(0, ...texts.map(text => measure.measureText(text).width));
  layout.most = innerWidth < 640 ? 16 : 28;
  layout.left = 14 + widest([...shown.flatMap(t => t.rows.map(rank => shorten(t.labelOf(rank), layout.most))), "memory"])
    + (state.paired ? 14 + widest(shown.map(t => shorten(t.name, 16))) : 0);
  layout.right = 56;
  charts = state.paired ? buildPaired(shown, host) : shown.flatMap(timeline => buildOne(timeline, host));
  redraw();
}
function buildOne(timeline, host) {
  fillFacts(make("div", host, undefined, "facts"), timeline);
  const chart = new ChartWithOverlay(timeline.rows.map(rank => [timeline, rank, true]), host, tellChart(timeline));
  return timeline.times.length && state.machine ? [chart, new MachineChart(timeline, host)] : [chart];
}
function buildPaired(shown, host) {
  for (const timeline of shown) fillFacts(make("div", host, undefined, "facts"), timeline);
  const ranks = [...new Set(shown.flatMap(timeline => timeline.rows))].sort((a, b) => a - b);
  const rows = ranks.flatMap(rank => shown.filter(t => t.rows.includes(rank)).map((timeline, i) => [timeline, rank, i === 0]));
  const machines = state.machine ? shown.filter(timeline => timeline.times.length) : [];
  return [new ChartWithOverlay(rows, host, shown.map(tellChart).join("; ")), ...machines.map(timeline => new MachineChart(timeline, host))];
}
function tellChart(timeline) {
  return `${timeline.name || "timeline"}: ${timeline.labels.length} ranks, ${duration(timeline.span)}, bubble ${percent(timeline.bubble)}`;
}
function fillFacts(facts, timeline) {
  const fact = (name, value) => make("b", make("span", facts, name + " "), value);
  if (timeline.name) make("h2", facts, timeline.name[0].toUpperCase() + timeline.name.slice(1));
  const acts = timeline.lanes.some(lane => lane.length), spans = timeline.program.length + timeline.spans.reduce((sum, s) => sum + s.length, 0);
  fact(acts ? "bubble" : "without operators", percent(timeline.bubble));
  if (timeline.ideal !== null) fact("in theory", percent(timeline.ideal));
  fact("length", duration(timeline.span));
  if (timeline.steps.known) fact("steps", String(timeline.steps.all.length));
  if (spans) fact("operators and ranges", spans.toLocaleString("en"));
  const most = Math.max(0, ...timeline.peaks.map(peak => peak[0]));
  const bytes = timeline.peaks.map(peak => peak[1]);
  if (most) fact("most kept on a rank", heldText(most, bytes[0] === undefined ? undefined : Math.max(...bytes)));
  if (state.critical) fact("critical path", `${timeline.path.length} computations, ${percent(timeline.computing)} of the time`);
  for (const note of timeline.notes) make("p", facts, note, "note");
}

// ---- view
function show(from, to) {
  const width = Math.min(Math.max(to - from, Math.max(longest * 1e-9, 1e-8)), longest);
  view.from = Math.min(Math.max(0, from), longest - width);
  view.to = view.from + width;
  redraw();
}
function zoom(factor, time = (view.from + view.to) / 2) {
  show(time + (view.from - time) * factor, time + (view.to - time) * factor);
}
function move(share) { const by = share * (view.to - view.from); show(view.from + by, view.to + by); }
function fit() { show(0, longest); }
/** Shows the next step of the first timeline that has steps, or the one before. */
function goToStep(by) {
  const timeline = shownTimelines().find(t => t.steps.known);
  if (!timeline) return;
  const { all } = timeline.steps, now = timeline.steps.indexAt((view.from + view.to) / 2), { start, end } = all[now];
  const near = view.from >= start && view.to <= end * (1 + 1e-9);
  const next = all[near ? Math.min(Math.max(now + by, 0), all.length - 1) : now];
  show(next.start, next.end);
}

// ---- pointing and pinning
function fill(box, event, more = []) {
  box.replaceChildren();
  make("b", box, event.name + "  " + purpose(event));
  const list = make("dl", box);
  for (const [word, value] of [...describe(event), ...more]) { make("dt", list, word); make("dd", list, value); }
}
function point(event, x, y) {
  if (!same(event, state.hovered)) { state.hovered = event; redraw(false); }
  tip.hidden = !event;
  if (!event) return;
  fill(tip, event);
  const left = x + 16 + tip.offsetWidth < innerWidth ? x + 16 : x - tip.offsetWidth - 12;
  const top = y + 18 + tip.offsetHeight < innerHeight ? y + 18 : y - tip.offsetHeight - 12;
  tip.style.left = Math.max(6, left) + "px";
  tip.style.top = Math.max(6, top) + "px";
}
function pin(event) {
  state.pinned = event;
  pinned.hidden = !event;
  if (event) {
    fill(pinned, event, compare(event));
    const close = make("button", pinned, "×");
    close.setAttribute("aria-label", "Let go of the pinned action");
    close.onclick = () => pin(null);
  }
  redraw(false);
}

// ---- legend, table, buttons
const mostHeldAnywhere = Math.max(0, ...timelines.flatMap(t => t.peaks.map(peak => peak[0])));
function fillLegend() {
  const legend = id("legend");
  const item = (colour, text, className) => {
    const entry = make("span", legend);
    make("i", entry, undefined, className).style.background = colour;
    entry.append(text);
  };
  const used = new Set(timelines.flatMap(timeline => timeline.lanes.flatMap(lane => [...new Set(lane.kind)])));
  data.kinds.forEach((kind, i) => { if (kind.compute && used.has(i)) item(kind.colours[0], kind.name); });
  const spans = new Set(timelines.flatMap(t => [t.program, ...t.spans].flatMap(s => [...new Set(s.kind)])));
  [["operator", "operator"], ["backward", "backward node"], ["range", "named range"], ["wait", "wait"], ["communication", "communication"]].forEach(([kind, name], i) => { if (spans.has(i)) item(`var(--${kind})`, name); });
  item("var(--idle)", "idle");
  const codes = data.kinds.filter((_, i) => used.has(i)).map(kind => kind.code);
  if (codes.some(code => code.startsWith("RECV"))) item("var(--wait)", "waiting for a message", "thin");
  if (mostHeldAnywhere) item("var(--memory)", "activations kept");
  const chunks = Math.max(0, ...timelines.flatMap(t => t.lanes.map(lane => lane.stages.length)));
  if (chunks > 1) make("span", legend, "darker: a rank’s later stages");
}
function fillTable() {
  const table = id("table"), named = timelines.length > 1, withBytes = timelines.map(t => t.peaks.some(p => p[1] !== undefined));
  const cell = (tag, row, text, scope) => { const made = make(tag, row, text); if (scope) made.scope = scope; return made; };
  const head = make("thead", table), body = make("tbody", table), foot = make("tfoot", table);
  if (named) {
    const row = make("tr", head);
    cell("th", row, "");
    timelines.forEach((t, i) => { cell("th", row, t.name, "colgroup").colSpan = withBytes[i] ? 4 : 3; });
  }
  const titles = make("tr", head);
  cell("th", titles, "rank", "col");
  timelines.forEach((_, i) => ["busy", "idle", "most kept", ...withBytes[i] ? ["memory"] : []].forEach(t => cell("th", titles, t, "col")));
  const tallest = timelines.reduce((a, b) => a.labels.length >= b.labels.length ? a : b, { labels: [] });
  tallest.labels.forEach((label, rank) => {
    const row = make("tr", body);
    cell("th", row, label, "row");
    timelines.forEach((timeline, i) => fillCells(row, timeline, rank, withBytes[i]));
  });
  const row = make("tr", foot);
  cell("th", row, "all", "row");
  timelines.forEach((t, i) => ["busy", "idle"].forEach((_, k) => cell("td", row, percent(k ? t.bubble : 1 - t.bubble)))
    || [0, ...withBytes[i] ? [1] : []].forEach(k => cell("td", row, tellPeak(Math.max(0, ...t.peaks.map(p => p[k])), k))));
  id("numbers").open = tallest.labels.length <= 16;
}
const tellPeak = (peak, inBytes) => inBytes ? bytesOf(peak) : String(peak);
function fillCells(row, timeline, rank, withBytes) {
  if (rank >= timeline.labels.length) { make("td", row).colSpan = withBytes ? 4 : 3; return; }
  const busy = make("td", row);
  make("i", make("span", busy, undefined, "bar")).style.width = 100 * timeline.busy[rank] + "%";
  busy.append(percent(timeline.busy[rank]));
  make("td", row, percent(1 - timeline.busy[rank]));
  timeline.peaks[rank].forEach((peak, k) => make("td", row, tellPeak(peak, k)));
}
function addToggles() {
  if (timelines.length > 1) timelines.forEach((timeline, i) => {
    const button = make("button", id("shown"), timeline.name);
    button.setAttribute("aria-pressed", "true");
    button.onclick = () => {
      state.shown[i] = !state.shown[i];
      if (!state.shown.includes(true)) state.shown.fill(true);
      [...id("shown").children].forEach((other, k) => other.setAttribute("aria-pressed", state.shown[k]));
      release();
      build();
    };
  });
  id("paired").hidden = timelines.length < 2;
  id("operators").hidden = !timelines.some(t => t.hasSpans);
  id("operators").setAttribute("aria-pressed", state.operators);
  id("machine").hidden = !timelines.some(t => t.times.length);
  id("memory").hidden = id("critical").hidden = !timelines.some(t => t.path.length);
  id("stepping").hidden = !timelines.some(t => t.steps.all.length > 1);
  for (const name of ["paired", "memory", "critical", "operators", "machine"]) id(name).onclick = () => {
    state[name] = !state[name];
    id(name).setAttribute("aria-pressed", state[name]);
    build();
  };
}
/** Forgets what is pointed at or pinned in a timeline that is no longer shown. */
function release() {
  point(null);
  if (state.pinned && !shownTimelines().includes(state.pinned.timeline)) pin(null);
  search();
  tellRange();
}
function addButtons() {
  id("in").onclick = () => zoom(1 / 1.6);
  id("out").onclick = () => zoom(1.6);
  id("fit").onclick = fit;
  id("before").onclick = () => goToStep(-1);
  id("after").onclick = () => goToStep(1);
  id("measure").onclick = () => {
    state.measuring = !state.measuring;
    id("measure").setAttribute("aria-pressed", state.measuring);
    if (!state.measuring) measure(null);
  };
  const dark = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  id("theme").onclick = () => {
    const now = root.style.colorScheme || (dark.matches ? "dark" : "light");
    root.style.colorScheme = now === "dark" ? "light" : "dark";
    redraw();
  };
  dark.addEventListener("change", () => redraw());
  const keys = { "+": id("in"), "=": id("in"), "-": id("out"), 0: id("fit"), r: id("paired"), m: id("memory"), c: id("critical"), t: id("measure"), o: id("operators"), u: id("machine"), "[": id("before"), "]": id("after") };
  addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { point(null); pin(null); measure(null); }
    if (event.key === "/") { event.preventDefault(); id("search").focus(); }
    const button = keys[event.key.toLowerCase()];
    if (button && !button.hidden) button.click();
  });
}
function addPrinting() {
  const root = document.documentElement;
  let theme = "";
  addEventListener("beforeprint", () => {
    [theme, root.style.colorScheme, state.printing] = [root.style.colorScheme, "light", true];
    redraw();
    drawNow();
  });
  addEventListener("afterprint", () => { [root.style.colorScheme, state.printing] = [theme, false]; redraw(); });
}

fillLegend();
fillTable();
addToggles();
addButtons();
addSearch();
addPrinting();
listenToAxis();
new ResizeObserver(() => redraw()).observe(id("charts"));
build();
