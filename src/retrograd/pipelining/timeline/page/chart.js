const HEAD = 20, DEEPEST = 6;                                      // pixels of the steps; lines of nested spans
const linesOf = spans => Math.min(spans.depths, DEEPEST + spans.above);
/** One or several timelines drawn as rows: [timeline, rank, whether a group of ranks begins] from top to bottom. */
class Chart {
  constructor(rows, parent, about) {
    this.rows = rows;
    this.heads = [...new Set(rows.map(([timeline]) => timeline))].filter(timeline => timeline.steps.known);
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
  /** Sets each row's top, the height of its actions, of its memory and of one line of its spans. */
  measure() {
    this.wide = this.over.clientWidth;
    const depths = this.rows.map(([timeline, rank]) => state.operators ? linesOf(timeline.spansOf(rank)) : 0);
    const count = this.rows.length, lines = depths.reduce((a, b) => a + b, 0);
    const tall = Math.max(15, Math.min(34, 420 / count)), strip = state.memory ? Math.max(7, Math.min(16, 200 / count)) : 0;
    this.line = lines > 24 ? 11 : lines > 8 ? 14 : 17;
    let top = 2 + this.heads.length * HEAD;
    this.boxes = this.rows.map(([timeline, rank, begins], row) => {
      const acts = timeline.laneOf(rank).length > 0, depth = depths[row];
      if (begins && row && state.paired) top += 6;
      const box = { top, lane: acts ? tall : depth ? 0 : 15, depth, strip: acts ? strip : 0 };
      top += box.lane + depth * this.line + box.strip + (box.strip ? 4 : depth ? 5 : 2);
      return { ...box, bottom: top };
    });
    this.tall = top + 2;
    this.over.style.height = this.canvas.style.height = this.tall + "px";
  }
  rowAt(y) { return this.boxes.findIndex(box => y >= box.top && y < box.bottom); }
  rowOf(event) { return this.places.get(timelines.indexOf(event.timeline) + "." + event.rank); }
  /** The top and the height of an action or span. */
  lineOf(event) {
    const box = this.boxes[this.rowOf(event)];
    if (!event.isSpan) return [box.top, box.lane];
    return [box.top + box.lane + Math.min(event.depth, box.depth - 1) * this.line, this.line];
  }
  x(time) { return xOf(time, this.wide); }
  clip(pen) {
    pen.beginPath();
    pen.rect(layout.left, 0, spread(this.wide), this.tall);
    pen.clip();
  }

  // ---- what does not follow the pointer
  draw() {
    const pen = this.pen = prepare(this.canvas, this.wide, this.tall);
    this.rows.forEach((place, row) => this.drawMargins(place, this.boxes[row]));
    this.heads.forEach((timeline, i) => this.drawHeadLabel(timeline, i));
    pen.save();
    this.clip(pen);
    pen.fillStyle = paint.line;
    for (const [time] of ticks(this.wide)) pen.fillRect(this.x(time), 0, 1, this.tall);
    this.heads.forEach((timeline, i) => this.drawSteps(timeline, i));
    this.rows.forEach((place, row) => this.drawRow(place, this.boxes[row]));
    pen.restore();
  }
  drawMargins([timeline, rank, begins], box) {
    const { pen } = this, tall = box.lane || this.line, middle = box.top + tall / 2;
    pen.textAlign = "left";
    if (!state.paired || begins) {
      pen.font = font(tall < 18 ? 11 : 12.5, state.paired ? 600 : 400);
      pen.fillStyle = paint.ink;
      pen.fillText(shorten(timeline.labelOf(rank), layout.most), 0, middle);
    }
    pen.font = font(tall < 18 ? 10.5 : 11.5);
    pen.fillStyle = paint.faint;
    pen.textAlign = "right";
    if (state.paired) pen.fillText(shorten(timeline.name, 16), layout.left - 10, middle);
    if (rank === PROGRAM) return;
    pen.fillText(percent(1 - timeline.busy[rank]), this.wide, middle);
    if (box.strip < 10) return;
    pen.font = font(10.5);
    pen.fillText("≤ " + timeline.peaks[rank][0], this.wide, box.bottom - 4 - box.strip / 2);
  }
  drawHeadLabel(timeline, i) {
    const { pen } = this, middle = 2 + i * HEAD + HEAD / 2 - 2;
    pen.font = font(11);
    pen.fillStyle = paint.faint;
    pen.textAlign = "left";
    pen.fillText("steps", 0, middle);
    pen.textAlign = "right";
    if (this.heads.length > 1) pen.fillText(shorten(timeline.name, 16), layout.left - 10, middle);
  }
  drawSteps({ steps }, i) {
    const { pen } = this, top = 2 + i * HEAD, tall = HEAD - 4;
    const draw = spacedOut((x, width, step) => {
      pen.fillStyle = paint.idle;
      pen.fillRect(x, top, Math.max(.5, width - 1), tall);
      const [from, to] = [Math.max(x, layout.left), Math.min(x + width, layout.left + spread(this.wide))], text = String(step.number);
      if (text.length * 7 + 4 > to - from) return;
      pen.font = font(11);
      pen.textAlign = "center";
      pen.fillStyle = paint.faint;
      pen.fillText(to - from > 80 ? "step " + text : text, (from + to) / 2, top + tall / 2 + .5);
    });
    for (let k = steps.indexAt(view.from); k < steps.all.length && steps.all[k].start <= view.to; k++) {
      const x = this.x(steps.all[k].start);
      draw(x, this.x(steps.all[k].end) - x, 0, steps.all[k]);
    }
  }
  drawRow([timeline, rank], box) {
    const { pen } = this, lane = timeline.laneOf(rank), from = this.x(0);
    pen.fillStyle = paint.idle;
    if (rank !== PROGRAM) pen.fillRect(from, box.top + 1, this.x(timeline.span) - from, (box.lane || box.depth * this.line) - 2);
    const draw = spacedOut((x, width, i) => this.drawAction(pen, lane, i, x, box, width));
    lane.within(view.from, view.to, i => {
      const x = this.x(lane.start[i]), width = this.x(lane.end[i]) - x;
      if (width > 0) draw(x, width, lane.kind[i], i);
    });
    if (box.depth) this.drawSpans(timeline, timeline.spansOf(rank), box);
    if (box.strip) this.drawMemory(lane, timeline.span, box.bottom - 4 - box.strip, box.strip);
  }
  drawAction(pen, lane, i, x, { top, lane: high }, width) {
    const kind = data.kinds[lane.kind[i]], tall = high - 2;
    if (kind.compute) return this.drawBox(pen, lane, i, x, top + 1, width, tall, kind);
    pen.fillStyle = kind.code.startsWith("SEND") ? paint.send : paint.wait;
    if (kind.code.startsWith("SEND")) pen.fillRect(x, top + tall - 3, width, 4);
    else pen.fillRect(x, top + tall / 2, width, 2.5);
  }
  drawSpans(timeline, spans, box) {
    const { pen, line } = this, right = layout.left + spread(this.wide), size = line < 14 ? 9 : 10.5;
    for (let depth = 0; depth < box.depth; depth++) {
      const top = box.top + box.lane + depth * line;
      const draw = spacedOut((x, width, i) => {
        pen.fillStyle = paint[timeline.spanKinds[spans.kind[i]]];
        pen.fillRect(x, top + .5, width > 2 ? width - .7 : Math.max(width, .5), line - 1.5);
        const from = Math.max(x, layout.left), room = Math.min(x + width, right) - from - 4, most = Math.floor(room / (size * .56));
        if (most < 3) return;
        pen.font = font(size);
        pen.textAlign = "left";
        pen.fillStyle = paint.ink;
        pen.fillText(shorten(timeline.texts[spans.name[i]], most), from + 2, top + line / 2);
      });
      spans.within(depth, view.from, view.to, i => {
        const x = this.x(spans.start[i]);
        draw(x, this.x(spans.end[i]) - x, spans.kind[i], i);
      });
    }
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
}
