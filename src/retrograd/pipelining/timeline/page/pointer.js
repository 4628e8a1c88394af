// How the charts answer to pointer and keys.
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
  chart.over.classList.toggle("pointing", !!(found || chart.stepAt(event.offsetX, event.offsetY)));
  point(found, event.clientX, event.clientY);
  redraw(false);
}
function pinAt(chart, event) {
  const found = chart.hit(event.offsetX, event.offsetY), step = chart.stepAt(event.offsetX, event.offsetY);
  if (step) show(step.start, step.end); else pin(same(found, state.pinned) ? null : found);
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
/** The actions of a row, or the spans of a depth of a row without actions, by their start. */
function itemsOf([timeline, rank], depth = 0) {
  const lane = timeline.laneOf(rank), spans = timeline.spansOf(rank);
  if (lane.length) return [...Array(lane.length).keys()].filter(i => lane.end[i] > lane.start[i]).map(i => ({ start: lane.start[i], end: lane.end[i], make: () => timeline.event(rank, i) }));
  return Array.from(spans.levels[depth] || [], i => ({ start: spans.start[i], end: spans.end[i], make: () => timeline.spanEvent(rank, i) }));
}
function walk(chart, by) {
  if (!chart.rows.length) return;
  const at = state.hovered && chart.rowOf(state.hovered) !== undefined ? state.hovered : null;
  const items = itemsOf(at ? [at.timeline, at.rank] : chart.rows[0], at ? at.depth : 0);
  if (!items.length) return;
  const now = at ? items.findIndex(item => item.start === at.start && item.end === at.end) + by : by < 0 ? 0 : firstAtLeast(items.map(item => item.end), view.from);
  select(chart, items[Math.min(Math.max(now, 0), items.length - 1)].make());
}
function climb(chart, by) {
  const at = state.hovered, row = at ? chart.rowOf(at) : undefined;
  if (row === undefined) return walk(chart, 1);
  const away = item => Math.abs(item.start + item.end - at.start - at.end);
  for (let next = row + by; next >= 0 && next < chart.rows.length; next += by) {
    const items = itemsOf(chart.rows[next]);
    if (items.length) return select(chart, items.reduce((a, b) => away(b) < away(a) ? b : a).make());
  }
}
function select(chart, event) {
  const width = view.to - view.from;
  if (event.start < view.from || event.end > view.to) show(event.start - width / 3, event.start + width * 2 / 3);
  const box = chart.over.getBoundingClientRect(), x = Math.max(layout.left, chart.x(event.start));
  point(event, box.left + x, box.top + chart.lineOf(event)[0] + chart.lineOf(event)[1]);
}

