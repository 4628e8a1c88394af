// What follows the pointer, on the canvas above that of a chart, and what is under it.
class ChartWithOverlay extends Chart {
  drawOver() {
    const pen = prepare(this.over, this.wide, this.tall), focus = state.pinned || state.hovered;
    pen.save();
    this.clip(pen);
    const followed = focus && !focus.isSpan ? this.visible(timeline => timeline.of(focus)) : [];
    const path = state.critical ? this.visible(timeline => timeline.path) : [];
    if (followed.length || state.critical) this.veil(pen);
    for (const event of [...path, ...followed]) this.again(pen, event);
    for (const timeline of state.critical ? shownTimelines() : []) this.drawPath(pen, timeline);
    for (const event of followed) if (event.kind.code.startsWith("SEND")) this.drawMessage(pen, event);
    for (const [event, colour] of [[state.hovered, paint.ink], [state.pinned, paint.accent]]) if (event) this.outline(pen, event, colour);
    eachFound(this, (event, x, width) => this.frame(pen, event, x, width, paint.path));
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
    for (const { top, lane } of this.boxes) pen.fillRect(layout.left, top, spread(this.wide), lane);
    pen.globalAlpha = 1;
  }
  again(pen, event) {
    const x = this.x(event.start);
    this.drawAction(pen, event.timeline.lanes[event.rank], event.index, x, this.boxes[this.rowOf(event)], Math.max(1, this.x(event.end) - x));
  }
  middle(event) { const [top, tall] = this.lineOf(event); return top + tall / 2; }
  drawPath(pen, timeline) {
    const path = timeline.path.filter(event => this.rowOf(event) !== undefined);
    pen.strokeStyle = paint.path;
    pen.lineWidth = 2;
    pen.lineJoin = "round";
    pen.beginPath();
    path.forEach((event, i) => {
      const [top, tall] = this.lineOf(event), y = top + tall - 2;
      if (i && path[i - 1].step === event.step) pen.lineTo(this.x(event.start), y); else pen.moveTo(this.x(event.start), y);
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
    const x = this.x(event.start);
    if (this.rowOf(event) !== undefined) this.frame(pen, event, x, Math.max(3, this.x(event.end) - x), colour);
  }
  frame(pen, event, x, width, colour) {
    if (event.isSpan && !this.boxes[this.rowOf(event)].depth) return;
    const [top, tall] = this.lineOf(event);
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.roundRect(x - .5, top, Math.max(3, width) + 1, tall, event.isSpan ? 2 : 4);
    pen.stroke();
  }

  /** The action or span under a point, the nearest within three pixels; computations before messages. */
  hit(x, y) {
    const row = this.rowAt(y);
    if (row < 0 || x < layout.left || x > layout.left + spread(this.wide)) return null;
    const [timeline, rank] = this.rows[row], lane = timeline.laneOf(rank), time = timeOf(x, this.wide), box = this.boxes[row];
    const slack = 3 * (view.to - view.from) / spread(this.wide), depth = Math.floor((y - box.top - box.lane) / this.line);
    let best = null, least = Infinity;
    const consider = (columns, more) => i => {
      const away = Math.max(columns.start[i] - time, time - columns.end[i], 0) + more(i);
      if (columns.end[i] > columns.start[i] && away < least) [best, least] = [i, away];
    };
    if (depth >= 0 && depth < box.depth) {
      const spans = timeline.spansOf(rank);
      spans.within(depth, time - slack, time + slack, consider(spans, () => 0));
      return best === null ? null : timeline.spanEvent(rank, best);
    }
    lane.within(time - slack, time + slack, consider(lane, i => data.kinds[lane.kind[i]].compute ? 0 : slack * 1e-3));
    return best === null ? null : timeline.event(rank, best);
  }
  /** The step under a point of the head, or null. */
  stepAt(x, y) {
    const timeline = this.heads[Math.floor((y - 2) / HEAD)], time = timeOf(x, this.wide);
    if (!timeline || x < layout.left) return null;
    const step = timeline.steps.all[timeline.steps.indexAt(time)];
    return step.start <= time && time <= step.end ? step : null;
  }
}
