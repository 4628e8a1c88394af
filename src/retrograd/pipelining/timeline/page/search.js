// Finding actions by name, kind, stage, rank or microbatch, and measuring a part of the time.
const found = { events: [], at: -1 };
const NUMBERED = { step: "step", stage: "stage", rank: "rank", micro: "micro", microbatch: "micro", "micro-batch": "micro", mb: "micro" };

// ---- search
/** Tests of actions, `(rank, lane, i) => boolean`, and of spans, for a text such as "F2.3", "backward stage 1" or "linear step 7"; null for none. */
function testsFor(text) {
  const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean), tests = [], spanTests = [];
  for (let i = 0; i < words.length; i++) {
    const field = NUMBERED[words[i]], number = Number(words[i + 1]);
    if (field && words[i + 1] !== undefined && Number.isInteger(number)) {
      const numberOf = (timeline, rank, columns, k) => field === "rank" ? rank : timeline.steps.all[timeline.steps.indexAt(columns.start[k])].number;
      const shared = (timeline, rank, columns, k) => numberOf(timeline, rank, columns, k) === number, common = field === "rank" || field === "step";
      tests.push(common ? shared : (_, rank, lane, k) => lane[field][k] === number);
      spanTests.push(common ? shared : () => false);
      i++;
    } else {
      tests.push(testForWord(words[i]));
      spanTests.push(testForName(words[i]));
    }
  }
  const all = list => (...at) => list.every(test => test(...at));
  return tests.length ? [all(tests), all(spanTests)] : null;
}
function testForWord(word) {
  const kinds = data.kinds.map(kind => purposeOf(kind).toLowerCase().includes(word) || kind.code.toLowerCase() === word);
  return (_, rank, lane, k) => kinds[lane.kind[k]]
    || (data.kinds[lane.kind[k]].code + lane.stage[k] + "." + lane.micro[k]).toLowerCase() === word;
}
/** A test of the names of spans: of each text once. The operator of conv2d is called convolution. */
function testForName(word) {
  const known = new Map(), operator = data.operatorNames[word.replace(/[123]d$/, "")] || word;
  return (timeline, rank, spans, k) => {
    if (!known.has(timeline)) known.set(timeline, timeline.texts.map(text => [word, operator].some(name => text.toLowerCase().includes(name))));
    return known.get(timeline)[spans.name[k]];
  };
}
/** Each found one is [timeline, rank, index, whether it is a span, start]. */
function search() {
  const tests = testsFor(id("search").value);
  found.events = [];
  found.at = -1;
  if (tests) for (const timeline of shownTimelines()) for (const rank of timeline.rows) {
    [timeline.laneOf(rank), timeline.spansOf(rank)].forEach((columns, isSpan) => {
      for (let i = 0; i < columns.length; i++)
        if (columns.end[i] > columns.start[i] && tests[isSpan](timeline, rank, columns, i)) found.events.push([timeline, rank, i, isSpan === 1, columns.start[i]]);
    });
  }
  found.events.sort((a, b) => a[4] - b[4]);
  tellFound(tests);
  redraw(false);
}
const foundEvent = ([timeline, rank, i, isSpan]) => isSpan ? timeline.spanEvent(rank, i) : timeline.event(rank, i);
function tellFound(test) {
  const count = found.events.length, label = id("found");
  label.textContent = !test ? "" : !count ? "none" : found.at < 0 ? String(count) : `${found.at + 1} of ${count}`;
}
/** Pins the next action that was found, or the one before, and moves the view to it. */
function goToFound(by) {
  const count = found.events.length;
  if (!count) return;
  found.at = found.at < 0 ? (by > 0 ? 0 : count - 1) : (found.at + by + count) % count;
  const event = foundEvent(found.events[found.at]);
  const width = view.to - view.from;
  if (event.start < view.from || event.end > view.to) show(event.start - width / 3, event.start + width * 2 / 3);
  pin(event);
  tellFound(true);
}
function addSearch() {
  const input = id("search");
  input.addEventListener("input", search);
  input.addEventListener("keydown", event => {
    event.stopPropagation();                                        // letters are no shortcuts here
    if (event.key === "Enter") goToFound(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { input.value = ""; search(); pin(null); }
  });
}
/** Calls `visit(event, x, width)` for the found actions and spans of a chart that are in view, one for each place that can be told apart. */
function eachFound(chart, visit) {
  const last = new Map();
  for (const one of found.events) {
    const [timeline, rank, i, isSpan] = one, columns = isSpan ? timeline.spansOf(rank) : timeline.laneOf(rank);
    if (columns.end[i] < view.from || columns.start[i] > view.to) continue;
    const row = chart.rowOf({ timeline, rank });
    if (row === undefined) continue;
    const x = chart.x(columns.start[i]), width = chart.x(columns.end[i]) - x, line = row + (isSpan ? "." + columns.depth[i] : "");
    if (x + width < last.get(line) + 2) continue;
    last.set(line, x + width);
    visit(foundEvent(one), x, width);
  }
}

// ---- measuring
/** What the ranks of a timeline do in a part of the time: seconds and number of computations, by rank and by kind, and of operators by name. */
function measureRange(timeline, from, to) {
  const busy = timeline.lanes.map(() => 0), kinds = new Map(), names = new Map();
  const add = (sums, key, seconds) => {
    const sum = sums.get(key) || { count: 0, seconds: 0 };
    sums.set(key, { count: sum.count + 1, seconds: sum.seconds + seconds });
  };
  const within = (columns, i) => Math.min(columns.end[i], to) - Math.max(columns.start[i], from);
  timeline.lanes.forEach((lane, rank) => lane.within(from, to, i => {
    const seconds = within(lane, i), kind = data.kinds[lane.kind[i]];
    if (seconds <= 0) return;
    add(kinds, kind, seconds);
    if (kind.compute) busy[rank] += seconds;
  }));
  for (const rank of timeline.rows) {
    const spans = timeline.spansOf(rank), acts = timeline.laneOf(rank).length > 0;
    const reached = [], waits = [];                                  // when a rank without actions is known to be busy
    for (let depth = 0; depth < spans.depths; depth++) spans.within(depth, from, to, i => {
      const seconds = within(spans, i), kind = timeline.spanKinds[spans.kind[i]];
      if (seconds <= 0) return;
      if (kind === "operator") add(names, timeline.texts[spans.name[i]], seconds);
      const part = [Math.max(spans.start[i], from), Math.min(spans.end[i], to)];
      if (kind === "wait") waits.push(part);
      if (!acts && rank !== PROGRAM && ["operator", "backward", "wait"].includes(kind)) reached.push(part);
    });
    if (reached.length) busy[rank] += lengthOf(reached) - lengthOf(waits);
  }
  return { busy, kinds, names };
}
/** The length of the union of intervals. */
function lengthOf(intervals) {
  let sum = 0, until = -Infinity;
  for (const [start, end] of intervals.sort((a, b) => a[0] - b[0])) {
    sum += Math.max(0, end - Math.max(start, until));
    until = Math.max(until, end);
  }
  return sum;
}
function tellRange() {
  const box = id("measured"), range = state.measured;
  box.hidden = !range;
  if (!range) return;
  const [from, to] = range;
  box.replaceChildren();
  make("b", box, duration(to - from));
  const list = make("dl", box), say = (word, value) => { make("dt", list, word); make("dd", list, value); };
  say("time", `${duration(from)} to ${duration(to)}`);
  for (const timeline of shownTimelines()) {
    const { busy, kinds, names } = measureRange(timeline, from, to), name = timeline.name ? timeline.name + ": " : "";
    const whole = busy.reduce((a, b) => a + b, 0) / (busy.length * (to - from));
    say(name + "busy", percent(whole));
    busy.forEach((seconds, rank) => { if (busy.length <= 8) say(timeline.labels[rank], percent(seconds / (to - from))); });
    for (const [kind, { count, seconds }] of kinds) say(purposeOf(kind), `${count}, in all ${duration(seconds)}`);
    const longestNames = [...names].sort((a, b) => b[1].seconds - a[1].seconds).slice(0, 8);
    for (const [operator, { count, seconds }] of longestNames) say(operator, `${count}, in all ${duration(seconds)}`);
  }
  const close = make("button", box, "×");
  close.setAttribute("aria-label", "Clear the measured range");
  close.onclick = () => measure(null);
}
const purposeOf = kind => kind.compute ? kind.name : kind.code.startsWith("SEND") ? "send" : "wait for a message";
function measure(range) {
  state.measured = range;
  tellRange();
  redraw(false);
}
