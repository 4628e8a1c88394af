// What the page was given, and how it is put into words.
const data = JSON.parse(document.getElementById("data").textContent);

function make(tag, parent, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  parent.append(element);
  return element;
}
const percent = share => (100 * share).toFixed(1) + " %";
const cut = (number, digits = 4) => String(Number(number.toPrecision(digits)));
function unitOf(seconds) {
  const size = Math.abs(seconds);
  return size >= 1 ? [1, "s"] : size >= 1e-3 || size === 0 ? [1e-3, "ms"] : size >= 1e-6 ? [1e-6, "µs"] : [1e-9, "ns"];
}
function duration(seconds) {
  const [unit, name] = unitOf(seconds);
  return cut(seconds / unit) + " " + name;
}
function bytesOf(count, digits = 4) {
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(names.length - 1, Math.floor(Math.log2(Math.max(count, 1)) / 10));
  return cut(count / 1024 ** power, digits) + " " + names[power];
}
/** The first index of a sorted list whose value is at least `wanted`. */
function firstAtLeast(sorted, wanted) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
}

/** The actions of one rank in order of their start, a column per field, times in seconds. */
class Lane {
  constructor(numbers, steps, tick) {
    const count = numbers.length / 6;
    for (const name of ["kind", "stage", "micro", "peer"]) this[name] = new Int32Array(count);
    for (const name of ["start", "end", "reach"]) this[name] = new Float64Array(count);
    let now = 0, reach = -Infinity;
    for (let i = 0, at = 0; i < count; i++, at += 6) {
      [this.kind[i], this.stage[i], this.micro[i], this.peer[i]] = [numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]];
      const start = now + numbers[at + 4], end = now = start + numbers[at + 5];
      this.start[i] = start * tick;
      this.end[i] = end * tick;
      this.reach[i] = reach = Math.max(reach, end * tick);       // sorted, unlike the ends of actions that overlap
    }
    this.length = count;
    this.stages = [...new Set(this.stage)].sort((a, b) => a - b);
    const kept = steps.filter((step, i) => i + 1 === steps.length || steps[i + 1][0] > step[0]);
    this.times = Float64Array.from(kept, step => step[0] * tick);
    this.held = kept.map(step => step[1]);
    this.bytes = kept.map(step => step[2]);
  }
  /** Calls `visit(index)` for each action that some of [from, to] sees. */
  within(from, to, visit) {
    for (let i = firstAtLeast(this.reach, from); i < this.length && this.start[i] <= to; i++) visit(i);
  }
  /** How the memory stands at a time: the last step at or before it, -1 before the first. */
  step(time) {
    const next = firstAtLeast(this.times, time);
    return this.times[next] === time ? next : next - 1;
  }
}

const EMPTY_LANE = new Lane([], [], 1);
const PROGRAM = -1;                                                // in place of a rank: the thread of the training loop
class Timeline {
  constructor(given) {
    Object.assign(this, given);
    const { tick, spans } = given;
    this.lanes = given.lanes.map((numbers, rank) => new Lane(numbers, given.memory[rank], tick));
    const communication = spans.kinds.indexOf("communication");
    this.spans = given.lanes.map((_, rank) => new Spans(spans.lanes[rank] || [], tick, communication));
    this.program = new Spans(spans.program, tick, communication);
    this.texts = spans.texts;
    this.spanKinds = spans.kinds;
    this.steps = new Steps(given.steps, this.span, tick);
    this.times = Float64Array.from(given.samples.times, time => time * tick);
    this.path = given.critical.map(([rank, index]) => this.event(rank, index));
    this.computing = this.path.reduce((sum, event) => sum + event.end - event.start, 0) / (this.span || 1);
    this.indices = new Map();
  }
  get ranks() { return [...this.lanes.keys()]; }
  /** The rows of a chart, from top to bottom. */
  get rows() { return [...this.program.length ? [PROGRAM] : [], ...this.ranks]; }
  laneOf(rank) { return rank === PROGRAM ? EMPTY_LANE : this.lanes[rank]; }
  spansOf(rank) { return rank === PROGRAM ? this.program : this.spans[rank]; }
  labelOf(rank) { return rank === PROGRAM ? "program" : this.labels[rank]; }
  get hasSpans() { return this.program.length > 0 || this.spans.some(spans => spans.length); }
  event(rank, index) {
    const lane = this.lanes[rank], event = { timeline: this, rank, index };
    for (const name of ["stage", "micro", "peer", "start", "end"]) event[name] = lane[name][index];
    event.kind = data.kinds[lane.kind[index]];
    event.step = this.steps.indexAt(event.start);
    event.name = event.kind.code + event.stage + "." + event.micro;
    if (event.peer >= 0) event.name += (event.kind.code.startsWith("SEND") ? ">" : "<") + event.peer;
    return event;
  }
  spanEvent(rank, index) {
    const spans = this.spansOf(rank), event = { timeline: this, rank, index, isSpan: true, kind: this.spanKinds[spans.kind[index]] };
    for (const name of ["depth", "start", "end"]) event[name] = spans[name][index];
    event.step = this.steps.indexAt(event.start);
    [event.name, event.shapes] = [this.texts[spans.name[index]], this.texts[spans.shapes[index]]];
    return event;
  }
  /** The actions of a step by name, and by microbatch: made when they are first asked for. */
  index(step) {
    let found = this.indices.get(step);
    if (found) return found;
    this.indices.set(step, found = { named: new Map(), followed: new Map() });
    const from = step ? this.steps.starts[step] : 0, until = this.steps.until(step);
    this.lanes.forEach((lane, rank) => lane.within(from, until, i => {
      const event = this.event(rank, i);
      if (event.step !== step) return;
      found.named.set(event.name, event);
      if (!found.followed.has(event.micro)) found.followed.set(event.micro, []);
      found.followed.get(event.micro).push(event);
    }));
    return found;
  }
  find(name, step = 0) { return this.index(step).named.get(name); }
  of({ micro, step }) { return this.index(step).followed.get(micro) || []; }
  /** The span of the same name and count in a step: the k-th of its rank and depth, as `event` in its own. */
  twin(event) {
    const at = event.timeline.countInStep(event), spans = this.spansOf(event.rank);
    if (!spans || event.step >= this.steps.all.length || event.depth >= spans.depths) return undefined;
    let count = 0, found;
    spans.within(event.depth, this.steps.starts[event.step], this.steps.until(event.step), i => {
      if (found === undefined && spans.start[i] >= this.steps.starts[event.step] && this.texts[spans.name[i]] === event.name && count++ === at)
        found = i;
    });
    return found === undefined ? undefined : this.spanEvent(event.rank, found);
  }
  countInStep(event) {
    const spans = this.spansOf(event.rank), from = this.steps.starts[event.step];
    let count = 0;
    spans.within(event.depth, from, event.start, i => { count += i < event.index && spans.start[i] >= from && spans.name[i] === spans.name[event.index]; });
    return count;
  }
  /** The two computations between which a send carries something. */
  ends(send) {
    const find = stage => send.kind.code === "SEND_F" ? this.find("F" + stage + "." + send.micro, send.step)
      : this.find("B" + stage + "." + send.micro, send.step) || this.find("I" + stage + "." + send.micro, send.step);
    return [find(send.stage), find(send.peer)];
  }
}
const timelines = data.timelines.map(given => new Timeline(given));
const longest = Math.max(...timelines.map(t => t.span), 1e-9);
const mostHeld = Math.max(1, ...timelines.flatMap(t => t.peaks.map(peak => peak[0])));
const same = (a, b) => a === b || a && b && a.timeline === b.timeline && a.rank === b.rank && a.index === b.index && a.isSpan === b.isSpan;

// ---- in words
function purpose({ kind, peer, isSpan }) {
  if (isSpan) return kind;
  if (kind.compute) return kind.name;
  const carried = kind.code.endsWith("F") ? "output" : "gradient";
  return kind.code.startsWith("SEND") ? `send ${carried} to stage ${peer}` : `wait for ${carried} from stage ${peer}`;
}
function heldText(held, bytes) {
  const text = held + (held === 1 ? " microbatch" : " microbatches");
  return bytes === undefined ? text : text + ", " + bytesOf(bytes);
}
function memoryAt(timeline, rank, time) {
  const lane = timeline.lanes[rank], step = lane.step(time);
  return step < 0 ? heldText(0) : heldText(lane.held[step], lane.bytes[step]);
}
function whereText({ timeline, rank, stage, step }) {
  const { number } = timeline.steps.all[step], place = rank === PROGRAM ? "program" : stage === undefined ? timeline.labelOf(rank) : `rank ${rank}, stage ${stage}`;
  return (timeline.name ? timeline.name + ", " : "") + place + (number === null ? "" : `, step ${number}`);
}
/** Pairs of a word and its value that tell an action or a span. */
function describe(event) {
  const { timeline, rank, micro, start, end } = event;
  const times = [["time", `${duration(start)} to ${duration(end)}`], ["length", duration(end - start)]];
  if (event.isSpan) return [["where", whereText(event)], ...event.shapes ? [["shapes", event.shapes]] : [], ...times];
  return [["where", whereText(event)], ["microbatch", String(micro)], ...times, ["kept then", memoryAt(timeline, rank, start)]];
}
/** The same action or span in the other timelines. */
function compare(event) {
  return timelines.filter(other => other !== event.timeline).map(other => {
    const twin = event.isSpan ? other.twin(event) : other.find(event.name, event.step);
    if (!twin) return [other.name, "not there"];
    const later = event.start - twin.start, own = twin.end - twin.start;
    const factor = own > 0 && event.end > event.start ? ` (here ${cut((event.end - event.start) / own, 3)} ×)` : "";
    const shift = later === 0 ? ", starts at the same time" : `, starts ${duration(Math.abs(later))} ${later > 0 ? "earlier" : "later"}`;
    return [other.name, duration(own) + factor + shift];
  });
}
