"""The page that shows timelines in a browser; `timeline.write_html` puts the title and the data in."""

PAGE = r"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@@TITLE@@</title>
<style>
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1f2733; --faint: #667085; --line: #e3e7ed;
  --idle: #edf0f4; --wait: #dde3eb; --send: #e5a11b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161c; --card: #1a2029; --ink: #e8ecf2; --faint: #97a3b4; --line: #2c3440;
    --idle: #242c37; --wait: #343e4c; --send: #e5a11b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 24px 20px 40px; max-width: 1500px; background: var(--page); color: var(--ink);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif;
}
header { display: flex; flex-wrap: wrap; align-items: center; gap: 10px 24px; margin-bottom: 14px; }
h1 { font-size: 21px; line-height: 1.2; margin: 0; flex: 1 1 260px; letter-spacing: -.01em; }
h2 { font-size: 15px; margin: 0; }
h2::first-letter { text-transform: uppercase; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; color: var(--faint); font-size: 13px; }
.legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; }
.buttons { display: flex; gap: 6px; }
button {
  font: inherit; min-width: 36px; height: 34px; padding: 0 12px; border-radius: 8px; cursor: pointer;
  color: var(--ink); background: var(--card); border: 1px solid var(--line);
}
button:hover { border-color: var(--faint); }
section {
  background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 14px 16px 10px;
  margin-bottom: 14px;
}
.facts { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 20px; margin-bottom: 8px; }
.facts span { color: var(--faint); } .facts b { color: var(--ink); font-variant-numeric: tabular-nums; }
canvas { display: block; width: 100%; cursor: grab; touch-action: pan-y; }
canvas:active { cursor: grabbing; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 7px 14px 7px 0; border-bottom: 1px solid var(--line); }
th { color: var(--faint); font-weight: 500; } th, td { white-space: nowrap; }
th::first-letter { text-transform: uppercase; }
tfoot td { font-weight: 600; } tbody + tfoot td { border-bottom: 0; padding-bottom: 2px; }
.bar {
  display: inline-block; width: min(150px, 16vw); height: 8px; border-radius: 4px; margin-right: 10px;
  background: var(--idle); overflow: hidden;
}
.bar i { display: block; height: 100%; background: #2f6fde; border-radius: 4px; }
#tip {
  position: fixed; z-index: 1; display: none; pointer-events: none; padding: 8px 11px; border-radius: 8px;
  background: var(--ink); color: var(--card); font-size: 12.5px; line-height: 1.5; white-space: pre;
  box-shadow: 0 4px 16px rgb(0 0 0 / .25); font-variant-numeric: tabular-nums;
}
.hint { color: var(--faint); font-size: 12.5px; margin: 12px 2px 0; }
@media (max-width: 600px) {
  body { padding: 16px 10px 28px; } section { padding: 12px 10px 8px; border-radius: 10px; }
  h1 { font-size: 18px; }
}
</style>
</head>
<body>
<header>
  <h1>@@TITLE@@</h1>
  <div class="legend" id="legend"></div>
  <div class="buttons">
    <button id="out" aria-label="Zoom out">&minus;</button>
    <button id="in" aria-label="Zoom in">+</button>
    <button id="fit">Fit</button>
  </div>
</header>
<main id="charts"></main>
<section><div class="scroll"><table id="table"></table></div></section>
<p class="hint">Wheel or pinch to zoom, drag to move, double click to fit. Point at a box to follow its
micro-batch through all stages.</p>
<div id="tip" role="status"></div>
<script type="application/json" id="data">@@DATA@@</script>
<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const longest = Math.max(...data.timelines.map(t => t.span), 1e-9);
const view = { from: 0, to: longest };
const tip = document.getElementById("tip");
let followed = null;                                  // the micro-batch under the pointer
let queued = false;

function make(tag, parent, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  parent.append(element);
  return element;
}
const percent = share => (100 * share).toFixed(1) + " %";
function duration(seconds) {
  const size = Math.abs(seconds);
  const [unit, name] = size >= 1 ? [1, "s"] : size >= 1e-3 || size === 0 ? [1e-3, "ms"] : [1e-6, "µs"];
  return Number((seconds / unit).toPrecision(4)) + " " + name;
}
function fontOf(size) { return size + "px system-ui, -apple-system, 'Segoe UI', Arial, sans-serif"; }
function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

// ---- what an event is --------------------------------------------------------------------------
const isCompute = kind => kind.length === 1;
function tell([rank, kind, stage, micro, peer, start, end]) {
  const carried = kind.endsWith("F") ? "output" : "gradient";
  const what = isCompute(kind) ? data.names[kind] : kind.startsWith("SEND")
    ? "send " + carried + " to stage " + peer : "wait for " + carried + " from stage " + peer;
  return kind + stage + "." + micro + "  " + what + "\nstage " + stage + ", micro-batch " + micro
    + "\nstart  " + duration(start) + "\nlength " + duration(end - start);
}

// ---- one chart per timeline --------------------------------------------------------------------
class Chart {
  constructor(timeline, parent) {
    this.timeline = timeline;
    this.rows = timeline.rows.map(() => []);
    for (const event of timeline.events) this.rows[event[0]].push(event);
    const card = make("section", parent);
    this.describe(make("div", card, undefined, "facts"));
    this.canvas = make("canvas", card);
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", timeline.name + " timeline, bubble " + percent(timeline.bubble));
    this.pen = this.canvas.getContext("2d");
    this.high = Math.max(16, Math.min(40, 340 / this.rows.length));
    this.pointers = new Map();
    this.listen();
  }
  describe(facts) {
    const fact = (name, value) => make("b", make("span", facts, name + " "), value);
    if (this.timeline.name) make("h2", facts, this.timeline.name);
    fact("bubble", percent(this.timeline.bubble));
    if (this.timeline.ideal !== null) fact("in theory", percent(this.timeline.ideal));
    fact("span", duration(this.timeline.span));
  }
  resize() {
    const scale = window.devicePixelRatio || 1;
    this.wide = this.canvas.clientWidth;
    this.tall = this.rows.length * this.high + 24;
    this.canvas.style.height = this.tall + "px";
    this.canvas.width = Math.round(this.wide * scale);
    this.canvas.height = Math.round(this.tall * scale);
    this.pen.setTransform(scale, 0, 0, scale, 0, 0);
    this.pen.font = fontOf(12);
    this.left = 14 + Math.max(...this.timeline.rows.map(row => this.pen.measureText(row).width));
  }
  x(time) { return this.left + (time - view.from) / (view.to - view.from) * (this.wide - this.left); }
  time(x) { return view.from + (x - this.left) / (this.wide - this.left) * (view.to - view.from); }

  draw() {
    this.resize();
    const { pen, left, wide, high } = this;
    const paint = {};
    for (const name of ["ink", "faint", "line", "idle", "wait", "send"]) paint[name] = colour("--" + name);
    pen.clearRect(0, 0, wide, this.tall);
    pen.textBaseline = "middle";
    this.timeline.rows.forEach((label, rank) => {
      pen.textAlign = "left";
      pen.fillStyle = paint.ink;
      pen.fillText(label, 0, (rank + .5) * high);
    });
    pen.save();
    pen.beginPath();
    pen.rect(this.left, 0, wide - this.left, this.tall);
    pen.clip();
    this.drawTicks(paint);
    pen.textAlign = "center";
    this.rows.forEach((events, rank) => this.drawRow(events, rank * high, paint));
    pen.restore();
  }
  drawTicks(paint) {
    const { pen } = this;
    const rough = (view.to - view.from) / Math.max(2, (this.wide - this.left) / 90);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= rough);
    pen.textAlign = "left";
    for (let n = Math.ceil(view.from / step); n * step <= view.to; n++) {
      const x = this.x(n * step);
      pen.fillStyle = paint.line;
      pen.fillRect(x, 0, 1, this.tall - 8);
      pen.fillStyle = paint.faint;
      pen.fillText(duration(n * step), x + 5, this.tall - 10);
    }
  }
  drawRow(events, top, paint) {
    const { pen, high } = this, pad = Math.min(3, high * .09), tall = high - 2 * pad;
    const edge = this.x(0);
    pen.fillStyle = paint.idle;
    pen.fillRect(edge, top + pad, this.x(this.timeline.span) - edge, tall);
    for (const [, kind, , micro, , start, end] of events) {
      if (end < view.from || start > view.to || end === start) continue;
      const x = this.x(start), width = this.x(end) - x;
      pen.globalAlpha = followed === null || followed === micro ? 1 : .22;
      if (isCompute(kind)) this.drawBox(x, top + pad, width, tall, kind, micro);
      else if (kind.startsWith("SEND")) this.fill(paint.send, x, top + high - pad - 4, width, 4);
      else this.fill(paint.wait, x, top + high / 2 - 1.5, width, 3);
    }
    pen.globalAlpha = 1;
  }
  fill(paint, x, y, width, tall) {
    this.pen.fillStyle = paint;
    this.pen.fillRect(x, y, width, tall);
  }
  drawBox(x, y, width, tall, kind, micro) {
    const { pen } = this, inset = width > 4 ? .75 : 0;
    pen.fillStyle = data.colours[kind];
    pen.beginPath();
    pen.roundRect(x + inset, y, Math.max(width - 2 * inset, .5), tall, Math.min(4, width / 5));
    pen.fill();
    const from = Math.max(x, this.left), to = Math.min(x + width, this.wide), text = String(micro);
    const size = [12, 10, 8].find(size => size < tall && text.length * size * .64 + 2 < to - from);
    if (!size) return;
    pen.font = fontOf(size);
    pen.fillStyle = kind === "W" ? "#14301a" : "#ffffff";
    pen.fillText(text, (from + to) / 2, y + tall / 2 + .5);
  }

  // ---- pointer, wheel, touch
  listen() {
    const { canvas } = this;
    canvas.addEventListener("wheel", event => this.onWheel(event), { passive: false });
    canvas.addEventListener("pointerdown", event => this.onDown(event));
    canvas.addEventListener("pointermove", event => this.onMove(event));
    for (const name of ["pointerup", "pointercancel"])
      canvas.addEventListener(name, event => this.pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => point(null));
    canvas.addEventListener("dblclick", fit);
  }
  onWheel(event) {
    event.preventDefault();
    const pixels = event.deltaMode === 1 ? 20 : 1;
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (sideways) this.move((event.deltaX || event.deltaY) * pixels);
    else zoom(Math.exp(event.deltaY * pixels * .0016), this.time(event.offsetX));
  }
  onDown(event) {
    this.pointers.set(event.pointerId, event.offsetX);
    this.canvas.setPointerCapture(event.pointerId);
    this.hover(event);
  }
  onMove(event) {
    const before = this.pointers.get(event.pointerId);
    if (before === undefined) return this.hover(event);
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
    if (others.length) this.pinch(before, event.offsetX, others[0][1]);
    else if (Math.abs(before - event.offsetX) > 0) { point(null); this.move(before - event.offsetX); }
    this.pointers.set(event.pointerId, event.offsetX);
  }
  pinch(before, now, anchor) {
    const apart = Math.max(8, Math.abs(now - anchor));
    zoom(Math.max(8, Math.abs(before - anchor)) / apart, this.time(anchor));
  }
  move(pixels) {
    const shift = pixels / (this.wide - this.left) * (view.to - view.from);
    show(view.from + shift, view.to + shift);
  }
  hover(event) {
    const row = this.rows[Math.floor(event.offsetY / this.high)], time = this.time(event.offsetX);
    const slack = (view.to - view.from) / (this.wide - this.left);
    const hits = event.offsetX < this.left || !row ? [] :
      row.filter(([, , , , , start, end]) => start - slack <= time && time <= end + slack && end > start);
    const distance = ([, , , , , start, end]) => Math.max(start - time, time - end, 0);
    hits.sort((a, b) => distance(a) - distance(b) || isCompute(b[1]) - isCompute(a[1]));
    point(hits[0] || null, event.clientX, event.clientY);
  }
}

// ---- what all charts share ---------------------------------------------------------------------
function point(event, x, y) {
  const micro = event && isCompute(event[1]) ? event[3] : null;
  if (micro !== followed) { followed = micro; redraw(); }
  tip.style.display = event ? "block" : "none";
  if (!event) return;
  tip.textContent = tell(event);
  tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - tip.offsetWidth - 6)) + "px";
  tip.style.top = (y + tip.offsetHeight + 24 < innerHeight ? y + 16 : y - tip.offsetHeight - 12) + "px";
}
function show(from, to) {
  const width = Math.min(Math.max(to - from, longest * 1e-5), longest);
  view.from = Math.min(Math.max(0, from), longest - width);
  view.to = view.from + width;
  redraw();
}
function zoom(factor, time) { show(time + (view.from - time) * factor, time + (view.to - time) * factor); }
function fit() { show(0, longest); }
function redraw() {
  if (queued) return;
  queued = true;
  requestAnimationFrame(() => { queued = false; drawAll(); });
}
function drawAll() { for (const chart of charts) chart.draw(); }
function fillLegend() {
  const legend = document.getElementById("legend");
  const used = new Set(data.timelines.flatMap(timeline => timeline.events.map(event => event[1])));
  const item = (paint, text) => {
    const entry = make("span", legend);
    make("i", entry).style.background = paint;
    entry.append(text);
  };
  for (const kind in data.colours) if (used.has(kind)) item(data.colours[kind], data.names[kind]);
  item("var(--idle)", "idle");
  item("var(--wait)", "waiting for a message");
}
function fillTable() {
  const table = document.getElementById("table"), { timelines } = data;
  const head = make("tr", make("thead", table)), body = make("tbody", table), foot = make("tfoot", table);
  make("th", head, "");
  for (const timeline of timelines) make("th", head, timeline.name ? timeline.name + ": busy" : "busy");
  const longestRows = timelines.reduce((a, b) => a.rows.length >= b.rows.length ? a : b, { rows: [] }).rows;
  longestRows.forEach((label, rank) => {
    const row = make("tr", body);
    make("td", row, label);
    for (const timeline of timelines) {
      const cell = make("td", row), share = timeline.busy[rank];
      if (share === undefined) continue;
      make("i", make("span", cell, undefined, "bar")).style.width = percent(share).replace(" ", "");
      cell.append(percent(share));
    }
  });
  const sum = (name, value) => {
    const row = make("tr", foot);
    make("td", row, name);
    for (const timeline of timelines) make("td", row, value(timeline));
  };
  sum("bubble", timeline => percent(timeline.bubble));
  if (timelines.some(timeline => timeline.ideal !== null))
    sum("bubble in theory", timeline => timeline.ideal === null ? "" : percent(timeline.ideal));
  sum("span", timeline => duration(timeline.span));
}
const charts = data.timelines.map(timeline => new Chart(timeline, document.getElementById("charts")));
fillLegend();
fillTable();
document.getElementById("in").onclick = () => zoom(1 / 1.6, (view.from + view.to) / 2);
document.getElementById("out").onclick = () => zoom(1.6, (view.from + view.to) / 2);
document.getElementById("fit").onclick = fit;
window.addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
drawAll();
</script>
</body>
</html>
"""
