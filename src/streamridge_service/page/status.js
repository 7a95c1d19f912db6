// Part 1: the state of the service, in words and a shape.
import { lapse } from "./clock.js";
import { byId, el, pool, setText, show } from "./dom.js";
import { factsOf } from "./facts.js";
import {
  NOT_YET,
  comparedWords,
  count,
  counted,
  isNumber,
  rough,
  sentence,
  stepWords,
} from "./format.js";
import { SERVICE, TROUBLES, glyph, setGlyph } from "./glyphs.js";

const WORDS = {
  live: "Live",
  starting: "Starting",
  degraded: "Degraded",
  stale: "Stale",
  stopping: "Stopping",
  lost: "Not live",
};
// With a step of a second the page would turn grey at every small delay.
const SHORTEST_PATIENCE = 3000;

let summary = null;
let heardAt = performance.now();
let ageAt = null;
let lostUntil = null;
let lostWhy = "";
const mark = glyph();

export function startStatus() {
  byId("status-glyph").append(mark);
  setGlyph(mark, SERVICE, "starting");
  setInterval(tick, 1000);
}

export function showSummary(told) {
  summary = told;
  ageAt = isNumber(told.newest_age_seconds)
    ? performance.now() - 1000 * told.newest_age_seconds
    : null;
  setText(byId("version"), `streamridge ${told.version}`);
  setText(byId("purpose"), purpose(told));
  showLapse();
  heard();
}

// The service has sent something: the page is live.
export function heard() {
  heardAt = performance.now();
  lostUntil = null;
  tick();
}

export function showLost(milliseconds, why) {
  lostWhy = why || "The connection to the service is lost.";
  lostUntil = performance.now() + milliseconds;
  tick();
}

function purpose({ total, step_seconds: step, horizon }) {
  if (total === 0) return "Forecasts of sensors, each with an interval.";
  const reach = stepWords(step * Math.max(1, horizon));
  return `Forecasts of ${counted(total, "sensor")} for the next ${reach}, each with an interval.`;
}

// Explains a clock that runs faster than real time.
function showLapse() {
  const pace = lapse();
  show(byId("lapse"), pace !== null);
  if (pace !== null) setText(byId("lapse"), `Time-lapse: ${rough(pace)} per second`);
}

function tick() {
  const silence = performance.now() - heardAt;
  const lost = lostUntil !== null || silence > patience();
  showSilence(lost, silence);
  const state = lost ? "lost" : (summary?.state ?? "starting");
  const word = WORDS[state] ?? state;
  setGlyph(mark, SERVICE, state);
  setText(byId("status-word"), word);
  if (!summary) return;
  setText(byId("status-sentence"), lost ? "The data below may be out of date." : verdict(summary));
  const age = ageAt === null ? null : (performance.now() - ageAt) / 1000;
  showFacts(factsOf(summary, age));
  const title = `${word} · ${counted(summary.total, "sensor")} · streamridge`;
  if (document.title !== title) document.title = title;
}

// After two steps without an event the stream is not live.
function patience() {
  return summary ? Math.max(2000 * summary.step_seconds, SHORTEST_PATIENCE) : Infinity;
}

function showSilence(lost, silence) {
  document.body.classList.toggle("is-silent", lost);
  show(byId("silence"), lost);
  if (!lost) return;
  const wait = lostUntil === null ? 0 : Math.max(0, lostUntil - performance.now());
  const why = lostUntil === null ? "The service sends nothing." : lostWhy;
  const again = wait > 0 ? ` Trying again in ${Math.ceil(wait / 1000)} s.` : " Trying again.";
  const since = summary ? ` Last message ${rough(silence / 1000)} ago.` : "";
  setText(byId("silence"), `This page is not live. ${why}${since}${again}`);
}

// Returns the state of the service in a sentence or two.
export function verdict({ state, reasons, sensors, total, error }) {
  if (total === 0) return "The service is ready for its first reading.";
  if (reasons?.length) return reasons.map(sentence).join(" ");
  if (state !== "live") return "";
  const ratio = error?.now;
  const errors = isNumber(ratio) ? ` Forecast errors are ${usual(ratio)}.` : "";
  return `${standing(sensors, total)}${errors}`;
}

// Returns the number of sensors that need attention, by state.
function standing(sensors, total) {
  const wrong = TROUBLES.filter((state) => sensors[state] > 0);
  const many = wrong.reduce((sum, state) => sum + sensors[state], 0);
  if (many) {
    const kinds = wrong.map((state) => `${count(sensors[state])} ${state}`).join(", ");
    const need = many === 1 ? "needs" : "need";
    return `${counted(total, "sensor")}, of which ${count(many)} ${need} attention: ${kinds}.`;
  }
  if (sensors.new === total) return "The sensors have too few readings for a model yet.";
  if (sensors.new)
    return `No sensor has a problem; ${count(sensors.new)} of ${count(total)} have no model yet.`;
  if (sensors.good !== total) return "The states of sensors are not known yet."; // just after the first reading
  return total === 1 ? "The sensor is good." : `All ${count(total)} sensors are good.`;
}

const usual = (ratio) => {
  const words = comparedWords(ratio);
  return words === "as usual" ? words : `${words}${ratio >= 2 ? " as" : " than"} usual`;
};

function showFacts(rows) {
  const nodes = pool(byId("facts"), rows.length, () => el("div", {}, [el("dt"), el("dd")]));
  rows.forEach(([caption, value, attention, title], i) => {
    const [term, text] = nodes[i].children;
    setText(term, caption);
    setText(text, attention ? `⚠ ${value}` : value);
    nodes[i].className = attention ? "attention" : value === NOT_YET ? "unknown" : "";
    if (nodes[i].title !== title) nodes[i].title = title;
  });
}
