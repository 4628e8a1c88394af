// The use of the machine under the ranks: a strip of each core, and the memory of the process.
class MachineChart {
  constructor(timeline, parent) {
    this.timeline = timeline;
    this.rows = [];
    const box = make("div", parent, undefined, "chart machine");
    this.canvas = make("canvas", box);
    this.over = make("canvas", box);
    this.canvas.setAttribute("aria-hidden", "true");
    this.over.setAttribute("role", "img");
    this.over.setAttribute("aria-label", this.text());
    this.cores = Math.max(0, ...timeline.samples.cores.map(cores => cores.length));
    this.most = Math.max(1, ...timeline.samples.memory);
    listen(this);
  }
  text() {
    const { cores, memory } = this.timeline.samples, all = cores.flat();
    return `cores busy ${percent(all.reduce((a, b) => a + b, 0) / 100 / Math.max(1, all.length))} on average, memory up to ${bytesOf(Math.max(0, ...memory))}`;
  }
  measure() {
    this.wide = this.over.clientWidth;
    this.core = Math.max(3, Math.min(12, 96 / Math.max(1, this.cores)));
    this.strips = this.cores * this.core;
    this.tall = this.strips + 6 + 34 + 4;
    this.over.style.height = this.canvas.style.height = this.tall + "px";
  }
  rowOf() { return undefined; }
  hit() { return null; }
  stepAt() { return null; }
  /** The index of the sample whose time is over at a time; the use of cores holds since the one before. */
  sampleAt(time) { return Math.min(firstAtLeast(this.timeline.times, time), this.timeline.times.length - 1); }
  draw() {
    const { timeline, wide, strips } = this, { times, samples } = timeline, pen = prepare(this.canvas, wide, this.tall);
    const bottom = this.tall - 4, high = 34;
    pen.font = font(11);
    pen.fillStyle = paint.faint;
    pen.textAlign = "left";
    if (this.cores) pen.fillText(this.cores === 1 ? "core" : `${this.cores} cores`, 0, Math.max(7, strips / 2));
    pen.fillText("memory", 0, bottom - high / 2);
    pen.textAlign = "right";
    if (state.paired) pen.fillText(shorten(timeline.name, 16), layout.left - 10, Math.max(7, strips / 2));
    pen.fillText(bytesOf(this.most, 3), wide, bottom - high / 2);
    pen.save();
    pen.beginPath();
    pen.rect(layout.left, 0, spread(wide), this.tall);
    pen.clip();
    pen.fillStyle = paint.idle;
    pen.fillRect(xOf(0, wide), 0, xOf(timeline.span, wide) - xOf(0, wide), strips);
    const shape = new Path2D(), first = Math.max(0, this.sampleAt(view.from) - 1);
    let last = -1;
    shape.moveTo(xOf(times[first], wide), bottom);
    for (let i = first; i < times.length && (i === first || times[i - 1] <= view.to); i++) {
      const x = xOf(i ? times[i - 1] : 0, wide), to = xOf(times[i], wide), pixel = Math.floor(2 * to);
      if (pixel === last) continue;
      last = pixel;
      shape.lineTo(to, bottom - samples.memory[i] / this.most * high);
      pen.fillStyle = paint.core;
      samples.cores[i].forEach((share, core) => {
        pen.globalAlpha = share / 100;
        pen.fillRect(x, core * this.core, Math.max(.5, to - x), this.core - 1);
      });
    }
    pen.globalAlpha = .55;
    shape.lineTo(Math.min(xOf(times[times.length - 1], wide), wide), bottom);
    pen.fillStyle = paint.memory;
    pen.fill(shape);
    pen.restore();
  }
  drawOver() {
    const pen = prepare(this.over, this.wide, this.tall);
    pen.save();
    pen.beginPath();
    pen.rect(layout.left, 0, spread(this.wide), this.tall);
    pen.clip();
    shadeRanges(pen, this.wide, this.tall);
    if (state.time !== null) this.drawReading(pen, xOf(state.time, this.wide));
    pen.restore();
  }
  drawReading(pen, x) {
    const { cores, memory } = this.timeline.samples, i = this.sampleAt(state.time);
    const busy = cores[i].length ? `${Math.round(cores[i].reduce((a, b) => a + b, 0) / cores[i].length)} % busy, ` : "";
    const text = busy + bytesOf(memory[i]), width = (pen.font = font(11), pen.measureText(text).width + 10);
    pen.globalAlpha = .45;
    pen.fillStyle = paint.ink;
    pen.fillRect(x, 0, 1, this.tall);
    pen.globalAlpha = .9;
    pen.fillStyle = paint.card;
    const left = x + width + 6 < this.wide - layout.right ? x + 5 : x - width - 5, top = this.tall - 22;
    pen.fillRect(left, top, width, 17);
    pen.globalAlpha = 1;
    pen.fillStyle = paint.ink;
    pen.textAlign = "left";
    pen.fillText(text, left + 5, top + 9);
  }
}
