// Part 1: one line of truth. How the service is, in words and a shape.
import { byId, el, pool, setText, show } from "./dom.js";
import {
  comparedWords,
  count,
  counted,
  isNumber,
  parsed,
  rough,
  sentence,
  stepWords,
  zonedTime,
} from "./format.js";
import { factsOf } from "./facts.js";
import { SERVICE, glyph, setGlyph } from "./glyphs.js";

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

function verdict({ state, reasons, last_step: step, total, error, zone }) {
  if (total === 0) return "It is ready for its first reading.";
  if (reasons?.length) return reasons.map(sentence).join(" ");
  if (state !== "live") return "";
  const heard = step ? `${reported(step)} reported for ${zonedTime(parsed(step.time), zone)}.` : "";
  const ratio = error?.now;
  return isNumber(ratio) ? `${heard} Forecast errors are ${usual(ratio)}.` : heard;
}

const reported = ({ received, expected }) => `${count(received)} of ${counted(expected, "sensor")}`;

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
    nodes[i].className = attention ? "attention" : "";
    if (nodes[i].title !== title) nodes[i].title = title;
  });
}
