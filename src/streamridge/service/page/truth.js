// Part 1: one line of truth. How the service is, in words and a shape.
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
// A step of a second would make the page grey at every small delay.
const SHORTEST_PATIENCE = 3000;

let summary = null;
let heardAt = performance.now();
let ageAt = null;
let lostUntil = null;
let lostWhy = "";
const mark = glyph();

export function startTruth() {
  byId("truth-glyph").append(mark);
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

// Something came from the service: the page is alive.
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
  if (total === 0) return "Forecasts of sensors, with the band that they will lie in.";
  const reach = stepWords(step * Math.max(1, horizon));
  return `What ${counted(total, "sensor")} will read in the next ${reach}, and how sure that is.`;
}

// Time that runs faster than the watch on the wall would puzzle whoever looks on.
function showLapse() {
  const pace = lapse();
  show(byId("lapse"), pace !== null);
  if (pace !== null) setText(byId("lapse"), `Time-lapse: ${rough(pace)} pass every second`);
}

function tick() {
  const silence = performance.now() - heardAt;
  const lost = lostUntil !== null || silence > patience();
  showSilence(lost, silence);
  const state = lost ? "lost" : (summary?.state ?? "starting");
  const word = WORDS[state] ?? state;
  setGlyph(mark, SERVICE, state);
  setText(byId("truth-word"), word);
  if (!summary) return;
  setText(byId("truth-sentence"), lost ? "What is below may be old." : verdict(summary));
  const age = ageAt === null ? null : (performance.now() - ageAt) / 1000;
  showFacts(factsOf(summary, age));
  const title = `${word} · ${counted(summary.total, "sensor")} · streamridge`;
  if (document.title !== title) document.title = title;
}

// A stream that has said nothing for two steps is not live.
function patience() {
  return summary ? Math.max(2000 * summary.step_seconds, SHORTEST_PATIENCE) : Infinity;
}

function showSilence(lost, silence) {
  document.body.classList.toggle("is-silent", lost);
  show(byId("silence"), lost);
  if (!lost) return;
  const wait = lostUntil === null ? 0 : Math.max(0, lostUntil - performance.now());
  const why = lostUntil === null ? "The service says nothing." : lostWhy;
  const again = wait > 0 ? ` Trying again in ${Math.ceil(wait / 1000)} s.` : " Trying again.";
  const since = summary ? ` Last word ${rough(silence / 1000)} ago.` : "";
  setText(byId("silence"), `This page is not live. ${why}${since}${again}`);
}

// How the service does, in a sentence or two.
export function verdict({ state, reasons, sensors, total, error }) {
  if (total === 0) return "It is ready for its first reading.";
  if (reasons?.length) return reasons.map(sentence).join(" ");
  if (state !== "live") return "";
  const ratio = error?.now;
  const errors = isNumber(ratio) ? ` Forecast errors are ${usual(ratio)}.` : "";
  return `${standing(sensors, total)}${errors}`;
}

// How many sensors need a look, and what is wrong with them.
function standing(sensors, total) {
  const wrong = TROUBLES.filter((state) => sensors[state] > 0);
  const many = wrong.reduce((sum, state) => sum + sensors[state], 0);
  if (many) {
    const kinds = wrong.map((state) => `${count(sensors[state])} ${state}`).join(", ");
    const need = many === 1 ? "needs" : "need";
    return `${counted(total, "sensor")}, of which ${count(many)} ${need} a look: ${kinds}.`;
  }
  if (sensors.new === total) return "Its sensors have too few readings for a model yet.";
  if (sensors.new)
    return `No sensor is in trouble; ${count(sensors.new)} of ${count(total)} have no model yet.`;
  if (sensors.good !== total) return "Its sensors are being looked at."; // a moment after the first
  return total === 1 ? "Its sensor is good." : `All ${count(total)} sensors are good.`;
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
