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
  layout.left = 14 + widest(shown.flatMap(t => t.labels.map(label => shorten(label, 28))))
    + (state.paired ? 14 + widest(shown.map(t => shorten(t.name, 16))) : 0);
  layout.right = 56;
  charts = state.paired ? [buildPaired(shown, host)] : shown.map(timeline => {
    fillFacts(make("div", host, undefined, "facts"), timeline);
    return new Chart(timeline.labels.map((_, rank) => [timeline, rank]), host, tellChart(timeline));
  });
  redraw();
}
function buildPaired(shown, host) {
  for (const timeline of shown) fillFacts(make("div", host, undefined, "facts"), timeline);
  const ranks = Math.max(...shown.map(timeline => timeline.labels.length));
  const rows = Array.from({ length: ranks }, (_, rank) => shown.map(timeline => [timeline, rank])).flat();
  return new Chart(rows.filter(([timeline, rank]) => rank < timeline.labels.length), host, shown.map(tellChart).join("; "));
}
function tellChart(timeline) {
  return `${timeline.name || "timeline"}: ${timeline.labels.length} ranks, ${duration(timeline.span)}, bubble ${percent(timeline.bubble)}`;
}
function fillFacts(facts, timeline) {
  const fact = (name, value) => make("b", make("span", facts, name + " "), value);
  if (timeline.name) make("h2", facts, timeline.name[0].toUpperCase() + timeline.name.slice(1));
  fact("bubble", percent(timeline.bubble));
  if (timeline.ideal !== null) fact("in theory", percent(timeline.ideal));
  fact("length", duration(timeline.span));
  const most = Math.max(0, ...timeline.peaks.map(peak => peak[0]));
  const bytes = timeline.peaks.map(peak => peak[1]);
  if (most) fact("most kept on a rank", heldText(most, bytes[0] === undefined ? undefined : Math.max(...bytes)));
  if (state.critical) fact("critical path", `${timeline.path.length} computations, ${percent(timeline.computing)} of the time`);
}

// ---- view
function show(from, to) {
  const width = Math.min(Math.max(to - from, longest * 1e-5), longest);
  view.from = Math.min(Math.max(0, from), longest - width);
  view.to = view.from + width;
  redraw();
}
function zoom(factor, time = (view.from + view.to) / 2) {
  show(time + (view.from - time) * factor, time + (view.to - time) * factor);
}
function move(share) { const by = share * (view.to - view.from); show(view.from + by, view.to + by); }
function fit() { show(0, longest); }

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

// ---- pointer: shared by the charts and, to choose a range, the axis
function listen(chart) {
  const { over } = chart, pointers = new Map();
  let moved = 0, range = false;
  over.addEventListener("wheel", event => onWheel(event, chart), { passive: false });
  over.addEventListener("pointerdown", event => {
    pointers.set(event.pointerId, event.offsetX);
    over.setPointerCapture(event.pointerId);
    [moved, range] = [0, event.shiftKey || state.measuring];
  });
  over.addEventListener("pointermove", event => {
    state.time = clamp(timeOf(event.offsetX, chart.wide));
    const before = pointers.get(event.pointerId);
    if (before === undefined) return hover(chart, event);
    moved += Math.abs(event.offsetX - before);
    if (moved < 4) return;
    point(null);
    over.classList.add("dragging");
    const others = [...pointers].filter(([key]) => key !== event.pointerId);
    if (range) choose(timeOf(before, chart.wide), state.time);
    else if (others.length) pinch(chart, before, event.offsetX, others[0][1]);
    else move((before - event.offsetX) / spread(chart.wide));
    if (!range) pointers.set(event.pointerId, event.offsetX);
  });
  const end = event => {
    if (pointers.delete(event.pointerId) && event.type === "pointerup") {
      if (range) applyRange();
      else if (moved < 4) pinAt(chart, event);
    }
    range = false;
    over.classList.remove("dragging");
  };
  over.addEventListener("pointerup", end);
  over.addEventListener("pointercancel", end);
  over.addEventListener("pointerleave", () => { state.time = null; point(null); redraw(false); });
  over.addEventListener("dblclick", fit);
  over.addEventListener("keydown", event => onKey(event, chart));
  over.addEventListener("blur", () => point(null));
}
const clamp = time => Math.min(Math.max(time, view.from), view.to);
function hover(chart, event) {
  const found = chart.hit(event.offsetX, event.offsetY);
  chart.over.classList.toggle("pointing", !!found);
  point(found, event.clientX, event.clientY);
  redraw(false);
}
function pinAt(chart, event) {
  const found = chart.hit(event.offsetX, event.offsetY);
  pin(same(found, state.pinned) ? null : found);
}
function onWheel(event, chart) {
  const pixels = event.deltaMode === 1 ? 20 : 1, out = event.deltaY > 0;
  const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  const beside = event.offsetX < layout.left || event.offsetX > layout.left + spread(chart.wide);
  const whole = out && view.to - view.from >= longest;
  if (!sideways && (beside || whole)) return;                       // the page scrolls
  event.preventDefault();
  if (sideways) move((event.deltaX || event.deltaY) * pixels / spread(chart.wide));
  else zoom(Math.exp(event.deltaY * pixels * .0016), timeOf(event.offsetX, chart.wide));
  hover(chart, event);
}
function pinch(chart, before, now, anchor) {
  zoom(Math.max(8, Math.abs(before - anchor)) / Math.max(8, Math.abs(now - anchor)), timeOf(anchor, chart.wide));
}
function choose(from, to) { state.range = [from, to]; redraw(false); }
function applyRange() {
  const [from, to] = (state.range || [0, 0]).sort((a, b) => a - b);
  state.range = null;
  if (state.measuring) measure(to > from ? [from, to] : null);
  else if (to > from) show(from, to); else redraw(false);
}
function listenToAxis() {
  let from = null;
  const time = event => clamp(timeOf(event.offsetX, axis.clientWidth));
  axis.addEventListener("pointerdown", event => { from = time(event); axis.setPointerCapture(event.pointerId); });
  axis.addEventListener("pointermove", event => { if (from !== null) choose(from, time(event)); });
  for (const name of ["pointerup", "pointercancel"]) axis.addEventListener(name, () => { from = null; applyRange(); });
  axis.addEventListener("dblclick", fit);
}

// ---- keys
function onKey(event, chart) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], up = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (step && event.shiftKey) move(step * .2);
  else if (step) walk(chart, step);
  else if (up) climb(chart, up);
  else if (event.key === "Home" || event.key === "End") walk(chart, event.key === "Home" ? -Infinity : Infinity);
  else if (event.key === "Enter" || event.key === " ") pin(same(state.hovered, state.pinned) ? null : state.hovered);
  else return;
  event.preventDefault();
}
const actionsOf = lane => [...Array(lane.length).keys()].filter(i => lane.end[i] > lane.start[i]);
function walk(chart, by) {
  const at = state.hovered && chart.rowOf(state.hovered) !== undefined ? state.hovered : null;
  const [timeline, rank] = at ? [at.timeline, at.rank] : chart.rows[0], lane = timeline.lanes[rank];
  const actions = actionsOf(lane);
  if (!actions.length) return;
  const place = at ? actions.indexOf(at.index) + by : by < 0 ? 0 : firstAtLeast(actions.map(i => lane.end[i]), view.from);
  select(chart, timeline.event(rank, actions[Math.min(Math.max(place, 0), actions.length - 1)]));
}
function climb(chart, by) {
  const at = state.hovered, row = at ? chart.rowOf(at) : undefined;
  if (row === undefined) return walk(chart, 1);
  for (let next = row + by; next >= 0 && next < chart.rows.length; next += by) {
    const [timeline, rank] = chart.rows[next], lane = timeline.lanes[rank], actions = actionsOf(lane);
    if (!actions.length) continue;
    const away = i => Math.abs(lane.start[i] + lane.end[i] - at.start - at.end);
    return select(chart, timeline.event(rank, actions.reduce((a, b) => away(b) < away(a) ? b : a)));
  }
}
function select(chart, event) {
  const width = view.to - view.from;
  if (event.start < view.from || event.end > view.to) show(event.start - width / 3, event.start + width * 2 / 3);
  const box = chart.over.getBoundingClientRect(), x = Math.max(layout.left, chart.x(event.start));
  point(event, box.left + x, box.top + chart.top(chart.rowOf(event)) + chart.lane);
}

// ---- legend, table, buttons
function fillLegend() {
  const legend = id("legend");
  const item = (colour, text, className) => {
    const entry = make("span", legend);
    make("i", entry, undefined, className).style.background = colour;
    entry.append(text);
  };
  const used = new Set(timelines.flatMap(timeline => timeline.lanes.flatMap(lane => [...new Set(lane.kind)])));
  data.kinds.forEach((kind, i) => { if (kind.compute && used.has(i)) item(kind.colours[0], kind.name); });
  item("var(--idle)", "idle");
  const codes = data.kinds.filter((_, i) => used.has(i)).map(kind => kind.code);
  if (codes.some(code => code.startsWith("RECV"))) item("var(--wait)", "waiting for a message", "thin");
  item("var(--memory)", "activations kept");
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
  for (const name of ["paired", "memory", "critical"]) id(name).onclick = () => {
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
  const keys = { "+": id("in"), "=": id("in"), "-": id("out"), 0: id("fit"), r: id("paired"), m: id("memory"), c: id("critical"), t: id("measure") };
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
