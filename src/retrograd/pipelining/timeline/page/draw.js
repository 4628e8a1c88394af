// Drawing: a canvas with all boxes, and one above it for what follows the pointer.
const view = { from: 0, to: longest };
const state = { shown: timelines.map(() => true), paired: false, memory: true, operators: timelines.some(t => t.hasSpans), critical: false, machine: true, hovered: null, pinned: null, time: null, range: null, measuring: false, measured: null };
const layout = { left: 0, right: 0 };
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif";
const font = (size, weight = 400) => `${weight} ${size}px ${FONT}`;
const paint = {};

/** Reads the theme's colours, which a canvas needs as numbers. */
function readColours() {
  const probe = make("i", document.body);
  for (const name of ["card", "ink", "faint", "line", "idle", "wait", "send", "memory", "edge", "path", "accent", "operator", "backward", "range", "communication", "core"]) {
    probe.style.color = `var(--${name})`;
    paint[name] = getComputedStyle(probe).color;
  }
  probe.remove();
}
/** Fits a canvas's pixels to the screen's; returns its pen, cleared, in CSS pixels. */
function prepare(canvas, wide, tall) {
  const scale = Math.max(window.devicePixelRatio || 1, state.printing ? 2 : 1);
  const [width, height] = [Math.round(wide * scale), Math.round(tall * scale)];
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, wide, tall);
  pen.textBaseline = "middle";
  return pen;
}
const spread = wide => Math.max(20, wide - layout.left - layout.right);
const xOf = (time, wide) => layout.left + (time - view.from) / (view.to - view.from) * spread(wide);
const timeOf = (x, wide) => view.from + (x - layout.left) / spread(wide) * (view.to - view.from);
/** Calls `visit` for all boxes that can be told apart: one of those that fall on the same half pixel. */
function spacedOut(visit) {
  let last = -1, lastSort = -1;
  return (x, width, sort, ...more) => {
    const pixel = Math.floor(2 * (x + width));
    if (width < .5 && pixel === last && sort === lastSort) return;
    [last, lastSort] = [pixel, sort];
    visit(x, width, ...more);
  };
}
function shorten(text, most) { return text.length > most ? text.slice(0, most - 1) + "…" : text; }

// ---- the time axis, which all charts share
function ticks(wide) {
  const rough = (view.to - view.from) / Math.max(2, spread(wide) / 100);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= rough);
  const [unit, name] = unitOf(view.to), digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / unit) + 1e-6)));
  const found = [];
  for (let n = Math.ceil(view.from / step - 1e-9); n * step <= view.to; n++)
    found.push([n * step, (n * step / unit).toFixed(digits) + " " + name]);
  return found;
}
function drawAxis(canvas) {
  const wide = canvas.clientWidth, tall = 30, pen = prepare(canvas, wide, tall), edge = wide - layout.right;
  pen.font = font(12);
  pen.fillStyle = paint.faint;
  pen.textAlign = "right";
  pen.fillText("idle", wide, 15);
  pen.textAlign = "left";
  for (const [time, label] of ticks(wide)) {
    const x = xOf(time, wide);
    pen.fillStyle = paint.line;
    pen.fillRect(x, 20, 1, 10);
    pen.fillStyle = paint.faint;
    const width = pen.measureText(label).width;
    if (x + width + 4 < edge) pen.fillText(label, x + 4, 15);
  }
  pen.fillStyle = paint.line;
  pen.fillRect(layout.left, 29, spread(wide), 1);
  shadeRanges(pen, wide, tall);
  if (state.time !== null) drawClock(pen, wide);
}
function drawClock(pen, wide) {
  const [unit, name] = unitOf(view.to), text = cut(state.time / unit) + " " + name;
  const width = pen.measureText(text).width + 12, x = xOf(state.time, wide);
  const left = Math.min(Math.max(layout.left, x - width / 2), wide - layout.right - width);
  pen.fillStyle = paint.ink;
  pen.beginPath();
  pen.roundRect(left, 5, width, 20, 5);
  pen.fill();
  pen.fillStyle = paint.card;
  pen.fillText(text, left + 6, 15.5);
}
function shadeRanges(pen, wide, tall) {
  for (const range of [state.range, state.measured]) if (range) shade(pen, range, wide, tall);
}
function shade(pen, range, wide, tall) {
  const [from, to] = range.map(time => xOf(time, wide));
  pen.globalAlpha = .18;
  pen.fillStyle = paint.accent;
  pen.fillRect(Math.min(from, to), 0, Math.abs(to - from), tall);
  pen.globalAlpha = 1;
}

