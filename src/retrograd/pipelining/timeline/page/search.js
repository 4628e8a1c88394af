// Finding actions by name, kind, stage, rank or micro-batch, and measuring a part of the time.
const found = { events: [], at: -1 };
const NUMBERED = { stage: "stage", rank: "rank", micro: "micro", microbatch: "micro", "micro-batch": "micro", mb: "micro" };

// ---- search
/** A test `(rank, lane, i) => boolean` for a text such as "F2.3", "backward stage 1" or "rank 0 micro-batch 4"; null for none. */
function testFor(text) {
  const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean), tests = [];
  for (let i = 0; i < words.length; i++) {
    const field = NUMBERED[words[i]], number = Number(words[i + 1]);
    if (field && words[i + 1] !== undefined && Number.isInteger(number)) {
      tests.push((rank, lane, k) => (field === "rank" ? rank : lane[field][k]) === number);
      i++;
    } else tests.push(testForWord(words[i]));
  }
  return tests.length ? (rank, lane, k) => tests.every(test => test(rank, lane, k)) : null;
}
function testForWord(word) {
  const kinds = data.kinds.map(kind => purposeOf(kind).toLowerCase().includes(word) || kind.code.toLowerCase() === word);
  return (_, lane, k) => kinds[lane.kind[k]]
    || (data.kinds[lane.kind[k]].code + lane.stage[k] + "." + lane.micro[k]).toLowerCase() === word;
}
function search() {
  const test = testFor(id("search").value);
  found.events = [];
  found.at = -1;
  if (test) for (const timeline of shownTimelines()) timeline.lanes.forEach((lane, rank) => {
    for (let i = 0; i < lane.length; i++) if (lane.end[i] > lane.start[i] && test(rank, lane, i)) found.events.push([timeline, rank, i]);
  });
  found.events.sort(([a, rank, i], [b, other, k]) => a.lanes[rank].start[i] - b.lanes[other].start[k]);
  tellFound(test);
  redraw(false);
}
function tellFound(test) {
  const count = found.events.length, label = id("found");
  label.textContent = !test ? "" : !count ? "none" : found.at < 0 ? String(count) : `${found.at + 1} of ${count}`;
}
/** Pins the next action that was found, or the one before, and moves the view to it. */
function goToFound(by) {
  const count = found.events.length;
  if (!count) return;
  found.at = found.at < 0 ? (by > 0 ? 0 : count - 1) : (found.at + by + count) % count;
  const [timeline, rank, i] = found.events[found.at], event = timeline.event(rank, i);
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
/** Calls `visit(event)` for the found actions of a chart that are in view. */
function eachFound(chart, visit) {
  for (const [timeline, rank, i] of found.events) {
    const lane = timeline.lanes[rank];
    if (lane.end[i] < view.from || lane.start[i] > view.to) continue;
    const event = timeline.event(rank, i);
    if (chart.rowOf(event) !== undefined) visit(event);
  }
}

// ---- measuring
/** What the ranks of a timeline do in a part of the time: seconds and number of computations, by rank and by kind. */
function measureRange(timeline, from, to) {
  const busy = timeline.lanes.map(() => 0), kinds = new Map();
  timeline.lanes.forEach((lane, rank) => lane.within(from, to, i => {
    const seconds = Math.min(lane.end[i], to) - Math.max(lane.start[i], from), kind = data.kinds[lane.kind[i]];
    if (seconds <= 0) return;
    const sum = kinds.get(kind) || { count: 0, seconds: 0 };
    kinds.set(kind, { count: sum.count + 1, seconds: sum.seconds + seconds });
    if (kind.compute) busy[rank] += seconds;
  }));
  return { busy, kinds };
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
    const { busy, kinds } = measureRange(timeline, from, to), name = timeline.name ? timeline.name + ": " : "";
    const whole = busy.reduce((a, b) => a + b, 0) / (busy.length * (to - from));
    say(name + "busy", percent(whole));
    busy.forEach((seconds, rank) => { if (busy.length <= 8) say(timeline.labels[rank], percent(seconds / (to - from))); });
    for (const [kind, { count, seconds }] of kinds) say(purposeOf(kind), `${count}, in all ${duration(seconds)}`);
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
