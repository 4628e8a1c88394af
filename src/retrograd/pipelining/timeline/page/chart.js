// Drawing: a canvas with all boxes, and one above it for what follows the pointer.
const view = { from: 0, to: longest };
const state = { shown: timelines.map(() => true), paired: false, memory: true, critical: false, hovered: null, pinned: null, time: null, range: null, measuring: false, measured: null };
const layout = { left: 0, right: 0 };
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif";
const font = (size, weight = 400) => `${weight} ${size}px ${FONT}`;
const paint = {};

/** Reads the theme's colours, which a canvas needs as numbers. */
function readColours() {
  const probe = make("i", document.body);
  for (const name of ["card", "ink", "faint", "line", "idle", "wait", "send", "memory", "edge", "path", "accent"]) {
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

/** One or several timelines drawn as rows: [timeline, rank] from top to bottom. */
class Chart {
  constructor(rows, parent, about) {
    this.rows = rows;
    const box = make("div", parent, undefined, "chart");
    this.canvas = make("canvas", box);
    this.over = make("canvas", box);
    this.canvas.setAttribute("aria-hidden", "true");
    const { over } = this;
    over.tabIndex = 0;
    over.setAttribute("role", "application");
    over.setAttribute("aria-roledescription", "timeline");
    over.setAttribute("aria-label", about);
    over.setAttribute("aria-describedby", "hint");
    this.places = new Map(rows.map(([timeline, rank], row) => [timelines.indexOf(timeline) + "." + rank, row]));
    listen(this);
  }
  measure() {
    this.wide = this.over.clientWidth;
    const count = this.rows.length;
    this.lane = Math.max(15, Math.min(34, 420 / count));
    this.strip = state.memory ? Math.max(7, Math.min(16, 200 / count)) : 0;
    this.high = this.lane + this.strip + (state.memory ? 4 : 0);
    this.tall = count * this.high + (state.paired ? this.rows.length / shownTimelines().length * 6 : 0) + 4;
    this.over.style.height = this.canvas.style.height = this.tall + "px";
  }
  top(row) { return 2 + row * this.high + (state.paired ? Math.floor(row / shownTimelines().length) * 6 : 0); }
  rowAt(y) {
    for (let row = 0; row < this.rows.length; row++)
      if (y >= this.top(row) && y < this.top(row) + this.high) return row;
    return -1;
  }
  rowOf(event) { return this.places.get(timelines.indexOf(event.timeline) + "." + event.rank); }
  x(time) { return xOf(time, this.wide); }
  clip(pen) {
    pen.beginPath();
    pen.rect(layout.left, 0, spread(this.wide), this.tall);
    pen.clip();
  }

  // ---- what does not follow the pointer
  draw() {
    const pen = this.pen = prepare(this.canvas, this.wide, this.tall);
    this.rows.forEach((place, row) => this.drawMargins(place, row));
    pen.save();
    this.clip(pen);
    pen.fillStyle = paint.line;
    for (const [time] of ticks(this.wide)) pen.fillRect(this.x(time), 0, 1, this.tall);
    this.rows.forEach((place, row) => this.drawRow(place, this.top(row)));
    pen.restore();
  }
  drawMargins([timeline, rank], row) {
    const { pen } = this, middle = this.top(row) + this.lane / 2, several = shownTimelines().length;
    pen.textAlign = "left";
    if (!state.paired || row % several === 0) {
      pen.font = font(this.lane < 18 ? 11 : 12.5, state.paired ? 600 : 400);
      pen.fillStyle = paint.ink;
      pen.fillText(shorten(timeline.labels[rank], 28), 0, middle);
    }
    pen.font = font(this.lane < 18 ? 10.5 : 11.5);
    pen.fillStyle = paint.faint;
    pen.textAlign = "right";
    if (state.paired) pen.fillText(shorten(timeline.name, 16), layout.left - 10, middle);
    pen.fillText(percent(1 - timeline.busy[rank]), this.wide, middle);
    if (this.strip < 10) return;
    pen.font = font(10.5);
    pen.fillText("≤ " + timeline.peaks[rank][0], this.wide, this.top(row) + this.lane + this.strip / 2 + 1);
  }
  drawRow([timeline, rank], top) {
    const { pen, lane: tall } = this, lane = timeline.lanes[rank], from = this.x(0);
    pen.fillStyle = paint.idle;
    pen.fillRect(from, top + 1, this.x(timeline.span) - from, tall - 2);
    let last = -1, lastKind = -1;
    lane.within(view.from, view.to, i => {
      const x = this.x(lane.start[i]), width = this.x(lane.end[i]) - x, kind = lane.kind[i];
      if (width <= 0) return;
      const pixel = Math.floor(2 * (x + width));
      if (width < .5 && pixel === last && kind === lastKind) return;   // it would fall on the same half pixel
      [last, lastKind] = [pixel, kind];
      this.drawAction(pen, lane, i, x, top, width);
    });
    if (state.memory) this.drawMemory(lane, timeline.span, top + tall, this.strip);
  }
  drawAction(pen, lane, i, x, top, width) {
    const kind = data.kinds[lane.kind[i]], tall = this.lane - 2;
    if (kind.compute) return this.drawBox(pen, lane, i, x, top + 1, width, tall, kind);
    pen.fillStyle = kind.code.startsWith("SEND") ? paint.send : paint.wait;
    if (kind.code.startsWith("SEND")) pen.fillRect(x, top + tall - 3, width, 4);
    else pen.fillRect(x, top + tall / 2, width, 2.5);
  }
  drawBox(pen, lane, i, x, y, width, tall, kind) {
    const chunk = lane.stages.length > 1 ? lane.stages.indexOf(lane.stage[i]) : 0;
    pen.fillStyle = kind.colours[chunk];
    if (width < 5) { pen.fillRect(x, y, width > 2 ? width - .5 : width, tall); return; }
    pen.beginPath();
    pen.roundRect(x + .6, y, width - 1.2, tall, Math.min(4, width / 5));
    pen.fill();
    const from = Math.max(x, layout.left), to = Math.min(x + width, layout.left + spread(this.wide));
    const text = String(lane.micro[i]), size = [12, 10.5, 9].find(size => size < tall && text.length * size * .62 + 3 < to - from);
    if (!size) return;
    pen.font = font(size);
    pen.textAlign = "center";
    pen.fillStyle = kind.ink;
    pen.fillText(text, (from + to) / 2, y + tall / 2 + .5);
  }
  drawMemory(lane, end, top, tall) {
    const { pen } = this, bottom = top + tall, last = lane.times.length - 1, right = this.x(Math.min(end, view.to));
    const height = step => step < 0 ? 0 : lane.held[step] / mostHeld * tall;
    const first = Math.max(-1, lane.step(view.from));
    const shape = new Path2D();
    let high = bottom - height(first);
    shape.moveTo(this.x(Math.max(0, view.from)), high);
    for (let step = first + 1; step <= last && lane.times[step] <= view.to; step++) {
      const x = this.x(lane.times[step]);
      shape.lineTo(x, high);
      shape.lineTo(x, high = bottom - height(step));
    }
    shape.lineTo(right, high);
    pen.strokeStyle = paint.edge;
    pen.stroke(shape);
    shape.lineTo(right, bottom);
    shape.lineTo(layout.left, bottom);
    pen.fillStyle = paint.memory;
    pen.globalAlpha = .55;
    pen.fill(shape);
    pen.globalAlpha = 1;
  }

  // ---- what follows the pointer
  drawOver() {
    const pen = prepare(this.over, this.wide, this.tall), focus = state.pinned || state.hovered;
    pen.save();
    this.clip(pen);
    const followed = focus ? this.visible(timeline => timeline.of(focus.micro)) : [];
    const path = state.critical ? this.visible(timeline => timeline.path) : [];
    if (focus || state.critical) this.veil(pen);
    for (const event of [...path, ...followed]) this.again(pen, event);
    for (const timeline of state.critical ? shownTimelines() : []) this.drawPath(pen, timeline);
    if (focus) for (const event of followed) if (event.kind.code.startsWith("SEND")) this.drawMessage(pen, event);
    for (const [event, colour] of [[state.hovered, paint.ink], [state.pinned, paint.accent]]) if (event) this.outline(pen, event, colour);
    eachFound(this, event => this.outline(pen, event, paint.path));
    shadeRanges(pen, this.wide, this.tall);
    if (state.time !== null) {
      pen.globalAlpha = .45;
      pen.fillStyle = paint.ink;
      pen.fillRect(this.x(state.time), 0, 1, this.tall);
    }
    pen.restore();
  }
  /** The events of the chart's timelines that are in view. */
  visible(choose) {
    const shown = [...new Set(this.rows.map(([timeline]) => timeline))];
    return shown.flatMap(choose).filter(event => event.end >= view.from && event.start <= view.to);
  }
  veil(pen) {
    pen.globalAlpha = .72;
    pen.fillStyle = paint.card;
    this.rows.forEach((_, row) => pen.fillRect(layout.left, this.top(row), spread(this.wide), this.lane));
    pen.globalAlpha = 1;
  }
  again(pen, event) {
    const x = this.x(event.start);
    this.drawAction(pen, event.timeline.lanes[event.rank], event.index, x, this.top(this.rowOf(event)), Math.max(1, this.x(event.end) - x));
  }
  middle(event) { return this.top(this.rowOf(event)) + this.lane / 2; }
  drawPath(pen, timeline) {
    const path = timeline.path.filter(event => this.rowOf(event) !== undefined);
    pen.strokeStyle = paint.path;
    pen.lineWidth = 2;
    pen.lineJoin = "round";
    pen.beginPath();
    path.forEach((event, i) => {
      const y = this.top(this.rowOf(event)) + this.lane - 2;
      if (i) pen.lineTo(this.x(event.start), y); else pen.moveTo(this.x(event.start), y);
      pen.lineTo(this.x(event.end), y);
    });
    pen.stroke();
  }
  drawMessage(pen, send) {
    const [made, used] = send.timeline.ends(send);
    if (!made || !used) return;
    const [x, y, toX, toY] = [this.x(made.end), this.middle(made), this.x(used.start), this.middle(used)];
    const bend = Math.max(8, (toX - x) / 2);
    pen.strokeStyle = pen.fillStyle = paint.ink;
    pen.lineWidth = 1.25;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.bezierCurveTo(x + bend, y, toX - bend, toY, toX - 4, toY);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(toX + 1, toY);
    pen.lineTo(toX - 6, toY - 3.5);
    pen.lineTo(toX - 6, toY + 3.5);
    pen.fill();
  }
  outline(pen, event, colour) {
    const row = this.rowOf(event);
    if (row === undefined) return;
    const x = this.x(event.start), width = Math.max(3, this.x(event.end) - x);
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.roundRect(x - .5, this.top(row), width + 1, this.lane, 4);
    pen.stroke();
  }

  /** The action under a point, the nearest within three pixels; computations before messages. */
  hit(x, y) {
    const row = this.rowAt(y);
    if (row < 0 || x < layout.left || x > layout.left + spread(this.wide)) return null;
    const [timeline, rank] = this.rows[row], lane = timeline.lanes[rank], time = timeOf(x, this.wide);
    const slack = 3 * (view.to - view.from) / spread(this.wide);
    let best = null, least = Infinity;
    lane.within(time - slack, time + slack, i => {
      if (lane.end[i] === lane.start[i]) return;
      const away = Math.max(lane.start[i] - time, time - lane.end[i], 0) + (data.kinds[lane.kind[i]].compute ? 0 : slack * 1e-3);
      if (away < least) [best, least] = [i, away];
    });
    return best === null ? null : timeline.event(rank, best);
  }
}
