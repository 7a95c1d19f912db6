// Texts about one sensor.
import { now } from "./clock.js";
import {
  comparedWords,
  digitsFor,
  isNumber,
  nearTime,
  number,
  parsed,
  percent,
  sentence,
  stepWords,
} from "./format.js";
import { STATES } from "./glyphs.js";
import { sourceWords } from "./sources.js";

const withUnit = (text, unit) => (unit ? `${text} ${unit}` : text);

// "Next 15 minutes: 312 veh/15min"
export function headline(first, { items, reason }, unit, step) {
  if (first) return `Next ${stepWords(step)}: ${withUnit(numbersOf(first)[0], unit)}`;
  if (items.length) return "The next forecast is on its way.";
  return reason ? `No forecast: ${sentence(reason)}` : "No forecast yet.";
}

// "90 % sure to lie between 290 and 335, by the model."
export function bandWords(first, source, level) {
  if (!first) return "";
  const [, lower, upper] = numbersOf(first);
  const made = source === "model" ? "by the model" : `not by the model, but ${sourceWords(source)}`;
  return `${percent(level)} sure to lie between ${lower} and ${upper}, ${made}.`;
}

function numbersOf({ value, lower, upper }) {
  return [value, lower, upper].map((each) => number(each, digitsFor(upper - lower, value)));
}

export function stateWords({ id, label, state, reason, newest, zone, group, acknowledged }) {
  const at = parsed(newest);
  const facts = [
    label && label !== id ? id : "",
    acknowledged ? "acknowledged" : "",
    group ? `group ${group}` : "",
    Number.isNaN(at) ? "no reading yet" : `newest reading ${nearTime(at, zone, now())}`,
    `times in ${zone || "UTC"}`,
  ];
  const why = state === "good" ? "" : `: ${reason || STATES[state]?.[3] || ""}`;
  return `${sentence(state + why)} ${facts.filter(Boolean).join(" · ")}`;
}

export function factWords({ state, error, error_ratio: ratio, outside, unit }, level) {
  if (!isNumber(error)) return unscored(state);
  const size = withUnit(number(error, error < 10 ? 1 : 0), unit);
  const share = isNumber(outside)
    ? ` ${percent(outside)} of readings were outside the interval; ${percent(1 - level)} are expected.`
    : "";
  return `Last day: forecasts were off by ${size} (root mean square)${compared(ratio)}.${share}`;
}

function unscored(state) {
  if (state === "silent") return "There are no recent readings to compare forecasts with.";
  return "Errors of forecasts are known after a day.";
}

function compared(ratio) {
  if (!isNumber(ratio)) return "";
  const words = comparedWords(ratio);
  if (words === "as usual") return `, ${words}`;
  return `, ${words} ${ratio >= 2 ? "as" : "than"} in the last four weeks`;
}
