// Part 4: one sensor, its last day and what comes next.
import { now } from "./clock.js";
import { byId, el, pool, setAttributes, setText, show, throttled } from "./dom.js";
import {
  clockTime,
  digitsFor,
  isNumber,
  number,
  offsetOf,
  parsed,
  percent,
  utcTime,
} from "./format.js";
import { STATES, glyph, setGlyph } from "./glyphs.js";
import { SensorChart } from "./sensor-chart.js";
import { factWords, headline, stateWords } from "./sensor-words.js";

const HOUR = 3600000;
const DAY = 24 * HOUR;
// Last week's course is asked for this far ahead, so that it need not be asked for at each step.
const AHEAD = 6 * HOUR;
const MOST_NUMBERS = 12;

export class SensorView {
  #app;
  #chart = new SensorChart();
  #mark = glyph();
  #stop = new AbortController();
  #item = null;
  #past = new Map();
  #week = [];
  #weekUntil = 0;
  #next = { items: [], source: "none", reason: null };

  // `app` has `api`, `guard(promise)` and `summary`.
  constructor(app) {
    this.#app = app;
    byId("sensor-glyph").append(this.#mark);
    this.refresh = throttled(2000, () => {
      if (this.#item) app.guard(this.#renew(this.#stop.signal));
    });
  }

  // Shows a sensor: at once what its item of the list tells, then what is asked for, as it comes.
  // Forecasts are made by a worker, which may be busy.
  async show(id, listed) {
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    setAttributes(byId("sensor"), { "aria-busy": true });
    this.#item = listed ?? (await this.#ask(id, "", {}, signal));
    this.#past = new Map();
    this.#week = [];
    this.#weekUntil = 0;
    this.#next = nextOf(this.#item);
    this.#drawWords();
    await this.#renew(signal);
  }

  // A new item of the list's shape; the rest is asked for.
  update(item) {
    if (item.id !== this.#item?.id) return;
    this.#item = { ...this.#item, ...item };
    this.refresh();
  }

  async #renew(signal) {
    const { id } = this.#item;
    const [from, to] = this.#span();
    const known = Math.max(from, ...this.#past.keys());
    const since = this.#past.size ? Math.max(from, known - 3 * this.#step()) : from;
    const span = { from: iso(since), to: iso(this.#after(to)), lead: 1 };
    const drawn = async (answer, take) => {
      const told = await answer;
      if (signal.aborted) return;
      take(told);
      this.#draw();
    };
    const parts = [
      drawn(this.#ask(id, "/history", span, signal), (told) => this.#takePast(told, from)),
      drawn(this.#ask(id, "/forecasts", {}, signal), (told) => (this.#next = told)),
    ];
    if (to + this.#reach() > this.#weekUntil) {
      parts.push(drawn(this.#askWeek(from, to, signal), (told) => this.#takeWeek(told)));
    }
    await Promise.all(parts);
  }

  #ask(id, part, params, signal) {
    return this.#app.api.get(`/v1/sensors/${encodeURIComponent(id)}${part}`, params, signal);
  }

  // The same weekday by the local clock, also across a change to summer time.
  async #askWeek(from, to, signal) {
    const { id, zone } = this.#item;
    const shift = 7 * DAY + offsetOf(to - 7 * DAY, zone) - offsetOf(to, zone);
    const end = to + this.#reach() + AHEAD;
    const span = { from: iso(from - shift), to: iso(end - shift), lead: 1 };
    const { items } = await this.#ask(id, "/history", span, signal);
    return { items, shift, end };
  }

  #step = () => 1000 * this.#app.summary.step_seconds;
  // The end of a span is not part of it, but the newest step shall be.
  #after = (to) => to + this.#step() / 2;
  #reach = () => this.#step() * Math.max(1, this.#app.summary.horizon);

  // The day until the newest reading of all sensors: one that fell silent shows its gap.
  #span() {
    const newest = parsed(this.#app.summary.newest);
    const to = Number.isNaN(newest) ? Math.floor(now() / this.#step()) * this.#step() : newest;
    return [to - DAY, to];
  }

  #takePast({ items }, from) {
    for (const each of items) this.#past.set(parsed(each.time), each);
    for (const at of this.#past.keys()) if (at < from) this.#past.delete(at);
    setAttributes(byId("sensor"), { "aria-busy": false });
  }

  #takeWeek({ items, shift, end }) {
    const good = ({ status, actual }) => (status === "implausible" ? null : actual);
    this.#week = items.map((each) => ({ at: parsed(each.time) + shift, actual: good(each) }));
    this.#weekUntil = end;
  }

  get #coming() {
    const { items, source } = this.#next;
    return items
      .map((each) => ({ ...each, at: parsed(each.time), source }))
      .filter(({ value }) => isNumber(value));
  }

  #draw() {
    this.#drawWords();
    this.#drawNumbers();
    if (byId("sensor").ariaBusy === "true") return; // The past is still to come.
    const [from, to] = this.#span();
    const [step, coming] = [this.#step(), this.#coming];
    const points = onGrid(this.#past, from, to, step);
    const end = Math.max(to + this.#reach(), ...coming.map(({ at }) => at));
    const week = this.#week.filter(({ at }) => at >= from && at <= end);
    const { zone, unit } = this.#item;
    const span = { from, to: end, newest: to, step, zone, unit: unit || "" };
    this.#chart.show({ ...span, points, week, coming });
    const sources = [...points, ...coming].map(({ source }) => source).filter(Boolean);
    show(
      byId("key-seasonal"),
      sources.some((source) => source !== "model"),
    );
    show(
      byId("key-odd"),
      points.some(({ status }) => status === "implausible"),
    );
  }

  #drawWords() {
    const item = this.#item;
    const { level, step_seconds: step } = this.#app.summary;
    setGlyph(this.#mark, STATES, item.state);
    setText(byId("sensor-name"), item.label || item.id);
    setText(byId("sensor-state"), stateWords(item));
    setText(byId("headline"), headline(this.#coming[0], this.#next, item.unit, step));
    setText(byId("band-words"), `band that ${percent(level)} should fall into`);
    setText(byId("sensor-facts"), factWords(item, level));
    const chart = `${item.label || item.id}: measured and forecast over the last day.`;
    setAttributes(byId("chart"), { "aria-label": `${chart} ${byId("headline").textContent}` });
  }

  #drawNumbers() {
    const coming = this.#coming;
    const rows = coming.length > 1 ? coming.slice(0, MOST_NUMBERS) : [];
    const nodes = pool(byId("upcoming"), rows.length, () =>
      el("li", {}, [el("time"), el("b"), el("span")]),
    );
    rows.forEach(({ at, value, lower, upper }, i) => {
      const [time, text, band] = nodes[i].children;
      const digits = digitsFor(upper - lower);
      setText(time, clockTime(at, this.#item.zone));
      setAttributes(time, { title: utcTime(at), datetime: iso(at) });
      setText(text, number(value, digits));
      setText(band, `${number(lower, digits)}–${number(upper, digits)}`);
    });
  }
}

const iso = (ms) => new Date(ms).toISOString();

// A point for every step, so that a step without one is seen as a gap.
function onGrid(past, from, to, step) {
  const points = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    points.push({ actual: null, status: "missing", ...past.get(at), at });
  }
  return points;
}

// What a sensor's item of the list tells of its next forecasts: the first of them.
function nextOf({ forecast }) {
  if (!forecast) return { items: [], source: "none", reason: null };
  return { items: [forecast], source: forecast.source, reason: null };
}
