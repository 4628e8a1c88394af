// The operators, backward nodes and named ranges of one rank, and the steps of a run.

/** Spans of one thread: a column per field, and their order by depth, in which none overlap. */
class Spans {
  constructor(numbers, tick, communication) {
    const count = this.length = numbers.length / 6;
    for (const name of ["name", "kind", "depth", "shapes"]) this[name] = new Int32Array(count);
    for (const name of ["start", "end"]) this[name] = new Float64Array(count);
    let now = 0;
    const order = [];
    for (let i = 0, at = 0; i < count; i++, at += 6) {
      [this.name[i], this.kind[i], this.depth[i], this.shapes[i]] = [numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]];
      now += numbers[at + 4];
      this.start[i] = now * tick;
      this.end[i] = (now + numbers[at + 5]) * tick;
      (order[this.depth[i]] ||= []).push(i);
    }
    this.levels = Array.from(order, indices => Int32Array.from(indices || []));
    /** The lines of communications, which are above the others. */
    this.above = this.levels.filter(level => this.kind[level[0]] === communication).length;
    this.ends = this.levels.map(level => Float64Array.from(level, i => this.end[i]));
  }
  get depths() { return this.levels.length; }
  /** Calls `visit(index)` for each span of a depth that some of [from, to] sees. */
  within(depth, from, to, visit) {
    const level = this.levels[depth];
    for (let k = firstAtLeast(this.ends[depth], from); k < level.length && this.start[level[k]] <= to; k++) visit(level[k]);
  }
}

/** The steps of a run; one without a number if none were recorded. */
class Steps {
  constructor(steps, span, tick) {
    this.known = steps.length > 0;
    this.all = this.known ? steps.map(([number, start, end]) => ({ number, start: start * tick, end: end * tick }))
      : [{ number: null, start: 0, end: span }];
    this.starts = Float64Array.from(this.all, step => step.start);
  }
  /** The index of the step that a time belongs to. */
  indexAt(time) {
    const next = firstAtLeast(this.starts, time);
    return Math.max(0, this.starts[next] === time ? next : next - 1);
  }
  /** The time until which actions belong to a step. */
  until(index) { return index + 1 < this.all.length ? this.starts[index + 1] : Infinity; }
}
