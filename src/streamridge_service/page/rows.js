// A row of the list: name, error compared with its usual size, newest reading and forecast.
import { now } from "./clock.js";
import { el, setAttributes, setText, svg } from "./dom.js";
import {
  brief,
  digitsFor,
  isNumber,
  nearTime,
  number,
  parsed,
  percent,
  sentence,
  utcTime,
} from "./format.js";
import { STATES, TROUBLES, glyph, setGlyph } from "./glyphs.js";

const TRENDS = { up: ["↗", "error rising"], down: ["↘", "error falling"] };

// Returns a row that `fillRow` fills in.
export function makeRow() {
  const bar = svg("svg", { class: "ratio-bar", "aria-hidden": "true" }, [
    svg("rect", { y: "20%", height: "60%" }),
    svg("line", { y1: 0, y2: "100%" }),
  ]);
  return el("div", { role: "row", class: "row" }, [
    el("span", { role: "gridcell", class: "who" }, [
      glyph(),
      el("span", { class: "names" }, [el("bdi"), el("small")]),
    ]),
    el("span", { role: "gridcell", class: "ratio" }, [el("b"), bar, el("i", { class: "trend" })]),
    el("span", { role: "gridcell", class: "outside" }),
    el("span", { role: "gridcell", class: "values" }, [el("b"), el("span")]),
  ]);
}

export function fillRow(row, item, selected) {
  const [who, ratio, outside, values] = row.children;
  row.dataset.id = item.id;
  setAttributes(row, {
    "aria-selected": String(selected),
    title: item.reason ? sentence(item.reason) : null,
  });
  setGlyph(who.firstElementChild, STATES, item.state);
  const [name, small] = who.lastElementChild.children;
  setText(name, item.label || item.id);
  const id = item.label && item.label !== item.id ? item.id : "";
  const wrong = TROUBLES.includes(item.state);
  const why = wrong && item.reason ? `${item.state}: ${item.reason}` : item.state;
  setText(small, item.state === "good" ? id : why);
  // For a sensor with a problem the state replaces its errors, which are out of date.
  row.classList.toggle("in-trouble", wrong);
  fillRatio(ratio, item);
  setText(outside, isNumber(item.outside) ? percent(item.outside) : "–");
  fillValues(values, item);
}

function fillRatio(cell, { error_ratio: ratio, trend }) {
  const [text, bar, arrow] = cell.children;
  const known = isNumber(ratio);
  setText(text, known ? `${number(ratio, ratio < 9.95 ? 1 : 0)} ×` : "–");
  const [rect, line] = bar.children;
  const middle = place(1);
  const end = known ? place(ratio) : middle;
  const tone = ratio >= 2 ? "bad" : ratio >= 1.4 ? "warn" : "calm";
  setAttributes(rect, {
    x: `${Math.min(middle, end)}%`,
    width: `${Math.abs(end - middle)}%`,
    class: `tone-${tone}`,
  });
  setAttributes(line, { x1: `${middle}%`, x2: `${middle}%` });
  const [sign, words] = known && TRENDS[trend] ? TRENDS[trend] : ["", ""];
  setText(arrow, sign);
  setAttributes(arrow, {
    title: words,
    "aria-label": words || null,
    class: `trend trend-${trend}`,
  });
}

// The ends of the logarithmic bar are one half and four.
const place = (ratio) =>
  Math.min(100, Math.max(0, (100 * Math.log2(Math.max(ratio, 1e-9) / 0.5)) / 3));

// An old reading or forecast is not shown, since it would look current. A forecast of a time that
// has passed says so: the sensor's own view shows later ones.
function fillValues(cell, { state, value, newest, zone, forecast }) {
  const digits = digitsFor(forecast ? forecast.upper - forecast.lower : 0, value);
  const [old, coming] = cell.children;
  const gone = state === "stale" || state === "silent";
  const next = forecast && !(gone && parsed(forecast.time) < now());
  setText(old, gone ? "–" : brief(value, digits));
  setText(coming, next ? ` → ${brief(forecast.value, digits)}${passedTime(forecast, zone)}` : "");
  const at = parsed(newest);
  setAttributes(cell, {
    title: Number.isNaN(at) ? null : `Read ${nearTime(at, zone, now())} (${utcTime(at)})`,
  });
}

function passedTime({ time }, zone) {
  const at = parsed(time);
  return at < now() ? ` for ${nearTime(at, zone, now())}` : "";
}
