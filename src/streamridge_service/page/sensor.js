// Part 4: one sensor, its last day and its next forecasts.
import { Actions } from "./actions.js";
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
import { drawNeighbours } from "./neighbours.js";
import { SensorChart } from "./sensor-chart.js";
import { bandWords, factWords, headline, stateWords } from "./sensor-words.js";
import { offerReset } from "./time-window.js";

const HOUR = 3600000;
const DAY = 24 * HOUR;
// Last week's values are loaded this far ahead, so that not every step needs a request.
const AHEAD = 6 * HOUR;
const MOST_NUMBERS = 12;
// The number of steps that are loaded again if something was missing.
const MOST_AGAIN = 200;

export class SensorView {
  #app;
  #chart = new SensorChart();
  #mark = glyph();
  #stop = new AbortController();
  #item = null;
  #past = new Map();
  #newest = NaN;
  #turn = 0;
  #week = [];
  #weekUntil = 0;
  #next = { items: [], source: "none", reason: null };
  #actions;

  // `app` has `api`, `guard(promise)` and `summary`.
  constructor(app) {
    this.#app = app;
    byId("sensor-glyph").append(this.#mark);
    this.#actions = new Actions(app, () => app.guard(this.#again()));
    offerReset(byId("chart-whole"), this.#chart.shown);
    byId("time-range").addEventListener("change", () => {
      this.#chart.shown.reset();
      app.guard(this.#again());
    });
    this.refresh = throttled(2000, () => {
      if (this.#item) app.guard(this.#renew(this.#stop.signal));
    });
  }

  // Shows a sensor: first its item of the list, then the responses as they arrive. A busy worker may
  // delay the forecasts.
  async show(id, listed) {
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    setAttributes(byId("sensor"), { "aria-busy": true });
    if (id !== this.#item?.id) this.#chart.shown.reset();
    this.#item = listed ?? (await this.#ask(id, "", {}, signal));
    this.#past = new Map();
    this.#newest = NaN;
    this.#week = [];
    this.#weekUntil = 0;
    this.#next = nextOf(this.#item);
    drawNeighbours(null);
    this.#drawWords();
    this.#drawNumbers();
    const asked = [this.#askPast, this.#askNext, this.#askWeek, this.#askNeighbours];
    const questions = asked.map((ask) => ask.call(this, signal));
    await Promise.all(questions.map(async (question) => this.#take([await question], signal)));
  }

  // Loads everything again: the range of time, or the past, has changed.
  async #again() {
    const { id } = this.#item ?? {};
    if (!id) return;
    const item = await this.#ask(id, "", {}, this.#stop.signal);
    if (id === this.#item.id) await this.show(id, item);
  }

  // Shows a new item of the list, and loads the rest.
  update(item) {
    if (item.id !== this.#item?.id) return;
    this.#item = { ...this.#item, ...item };
    this.refresh();
  }

  // A new step is drawn as a whole, and the past is loaded last, so that past and future match. A
  // failed request does not keep the rest from being drawn.
  async #renew(signal) {
    const turn = (this.#turn += 1);
    let failure = null;
    const noted = (question) =>
      question.catch((error) => {
        failure = error;
        return () => {};
      });
    const next = await noted(this.#askNext(signal));
    const others = [this.#askPast(signal), this.#askWeek(signal), this.#askNeighbours(signal)];
    const rest = await Promise.all(others.map(noted));
    if (turn === this.#turn) this.#take([next, ...rest], signal);
    if (failure) throw failure;
  }

  // Applies responses unless another sensor is shown by now; each request returns a function.
  #take(answers, signal) {
    if (signal.aborted) return;
    for (const take of answers) take();
    this.#draw();
  }

  async #askPast(signal) {
    const [from, to] = this.#span();
    const span = { from: iso(this.#since(from)), to: iso(to + this.#reach()), lead: 1 };
    const told = await this.#ask(this.#item.id, "/history", span, signal);
    return () => this.#takePast(told, from);
  }

  async #askNext(signal) {
    const told = await this.#ask(this.#item.id, "/forecasts", {}, signal);
    return () => (this.#next = told);
  }

  async #askNeighbours(signal) {
    if (!this.#item.group) return () => drawNeighbours(null);
    const { neighbours } = await this.#ask(this.#item.id, "", {}, signal);
    return () => drawNeighbours(neighbours ?? null);
  }

  // Loads the same local weekday of last week, also across a change to summer time.
  async #askWeek(signal) {
    const { id, zone } = this.#item;
    const [from, to] = this.#span();
    if (to + this.#reach() <= this.#weekUntil) return () => {};
    const shift = 7 * DAY + offsetOf(to - 7 * DAY, zone) - offsetOf(to, zone);
    const end = to + this.#reach() + AHEAD;
    const span = { from: iso(from - shift), to: iso(end - shift), lead: 1 };
    const { items } = await this.#ask(id, "/history", span, signal);
    return () => this.#takeWeek({ items, shift, end });
  }

  // Returns the first step of the day that was incomplete in the last response: forecasts follow
  // readings, and late readings come at any time.
  #since(from) {
    if (!this.#past.size) return from;
    const least = Math.max(from, this.#newest - MOST_AGAIN * this.#step());
    const lacking = onGrid(this.#past, least, this.#newest, this.#step()).find(
      ({ actual, forecast }) => !isNumber(actual) || !isNumber(forecast),
    );
    return Math.max(from, Math.min(lacking?.at ?? Infinity, this.#newest - 3 * this.#step()));
  }

  #ask(id, part, params, signal) {
    return this.#app.api.get(`/v1/sensors/${encodeURIComponent(id)}${part}`, params, signal);
  }

  // The length of the shown past.
  #length = () => HOUR * Number(byId("time-range").value);
  #step = () => 1000 * this.#item.step_seconds;
  #reach = () => this.#step() * Math.max(1, this.#app.summary.horizon);

  // The day ends at the newest reading of all sensors, so that a silent sensor shows a gap.
  #span() {
    const newest = parsed(this.#app.summary.newest);
    const to = Number.isNaN(newest) ? Math.floor(now() / this.#step()) * this.#step() : newest;
    return [to - this.#length(), to];
  }

  #takePast({ items }, from) {
    for (const each of items) this.#past.set(parsed(each.time), each);
    for (const at of this.#past.keys()) if (at < from) this.#past.delete(at);
    const read = items.findLast(({ actual }) => isNumber(actual));
    this.#newest = Math.max(this.#span()[1], read ? parsed(read.time) : -Infinity);
    setAttributes(byId("sensor"), { "aria-busy": false });
  }

  #takeWeek({ items, shift, end }) {
    const good = ({ status, actual }) => (status === "implausible" ? null : actual);
    this.#week = items.map((each) => ({ at: parsed(each.time) + shift, actual: good(each) }));
    this.#weekUntil = end;
  }

  // Returns forecasts of steps without a reading; behind a busy worker the first may have passed.
  get #coming() {
    const { items, source } = this.#next;
    return items
      .map((each) => ({ ...each, at: parsed(each.time), source }))
      .filter(({ at, value }) => isNumber(value) && !(at <= this.#newest));
  }

  #draw() {
    this.#drawWords();
    this.#drawNumbers();
    if (byId("sensor").ariaBusy === "true") return; // The past is not loaded yet.
    const to = this.#newest;
    const from = to - this.#length();
    const [step, coming] = [this.#step(), this.#coming];
    const points = onGrid(this.#past, from, to, step);
    const end = Math.max(to + this.#reach(), ...coming.map(({ at }) => at));
    const week = this.#week.filter(({ at }) => at >= from && at <= end);
    const { zone, unit } = this.#item;
    const span = { from, to: end, newest: to, step, zone, unit: unit || "" };
    const begun = Boolean(this.#item.newest);
    for (const part of ["charted", "legend", "chart-help"]) show(byId(part), begun);
    show(byId("chart-empty"), !begun);
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
    const { level } = this.#app.summary;
    setGlyph(this.#mark, STATES, item.state);
    setText(byId("sensor-name"), item.label || item.id);
    setText(byId("sensor-state"), stateWords(item));
    const [first] = this.#coming;
    setText(byId("headline"), headline(first, this.#next, item.unit, item.step_seconds));
    setText(byId("headline-band"), bandWords(first, this.#next.source, level));
    setText(byId("band-words"), `${percent(level)} interval`);
    setText(byId("sensor-facts"), factWords(item, level));
    this.#actions.show(item);
    const range = byId("time-range").selectedOptions[0].text;
    const chart = `${item.label || item.id}: measured and forecast over the last ${range}.`;
    setAttributes(byId("chart"), { "aria-label": `${chart} ${byId("headline").textContent}` });
  }

  #drawNumbers() {
    const coming = this.#coming;
    const { horizon } = this.#app.summary;
    // All rows exist from the start, so that nothing below moves later.
    const many = this.#next.items.length && horizon > 1 ? Math.min(horizon, MOST_NUMBERS) : 0;
    const begin = coming[0]?.at ?? this.#newest + this.#step();
    const nodes = pool(byId("upcoming"), many, () =>
      el("li", {}, [el("time"), " ", el("b"), el("span")]),
    );
    nodes.forEach((node, i) => {
      const { at = begin + i * this.#step(), value, lower, upper } = coming[i] ?? {};
      const [time, text, band] = node.children;
      const digits = digitsFor(upper - lower, value);
      setText(time, clockTime(at, this.#item.zone));
      setAttributes(time, { title: utcTime(at), datetime: iso(at) });
      setText(text, number(value, digits));
      setText(band, isNumber(value) ? `${number(lower, digits)}–${number(upper, digits)}` : "");
    });
  }
}

const iso = (ms) => new Date(ms).toISOString();

// Returns a point for every step, so that a missing step is shown as a gap.
function onGrid(past, from, to, step) {
  const points = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    points.push({ actual: null, status: "missing", ...past.get(at), at });
  }
  return points;
}

// Returns the next forecasts in a sensor's item of the list: only the first one.
function nextOf({ forecast }) {
  if (!forecast) return { items: [], source: "none", reason: null };
  return { items: [forecast], source: forecast.source, reason: null };
}
