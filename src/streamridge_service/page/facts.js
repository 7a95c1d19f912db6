// The figures next to the state of the service.
import { now } from "./clock.js";
import {
  NOT_YET,
  comparedWords,
  count,
  diskWords,
  isNumber,
  parsed,
  precise,
  utcTime,
  zonedTime,
} from "./format.js";

// Limits beyond which a figure is highlighted.
const FEW_DAYS = 14;
const FEW_READINGS = 0.9;
const LARGE_ERRORS = 1.5;

// Returns caption, value, whether it is highlighted, and the tooltip of each figure.
export function factsOf(told, age) {
  return [newest(told, age), lastStep(told), refused(told), errors(told), disk(told), clock(told)];
}

function newest({ newest: iso, step_seconds: step }, age) {
  const words = age === null ? NOT_YET : precise(age);
  return ["since the newest reading", words, age > 2 * step, iso ? utcTime(parsed(iso)) : ""];
}

function lastStep({ last_step: step, zone }) {
  if (!step) return ["readings of the last step", NOT_YET, false, ""];
  const at = parsed(step.time);
  const words = `${count(step.received)} of ${count(step.expected)}`;
  const few = step.received < FEW_READINGS * step.expected;
  return [`readings for ${zonedTime(at, zone)}`, words, few, `Step of ${utcTime(at)}`];
}

function refused({ refused_last_hour: rows }) {
  const hover = "Rows that the service refused; /problems explains each code.";
  return ["refused, last hour", count(rows), rows > 0, hover];
}

function errors({ error }) {
  const hover = "Recent error divided by the usual error, averaged over all sensors.";
  const large = error?.now >= LARGE_ERRORS;
  return ["forecast errors vs. usual", comparedWords(error?.now), large, hover];
}

function disk({ days_left: days }) {
  const few = isNumber(days) && days < FEW_DAYS;
  return ["until the disk is full", diskWords(days), few, "At the present rate of growth."];
}

function clock({ clock_warning: warning }) {
  const hover = `The service's clock: ${utcTime(now())}`;
  return ["clock", warning || "steady", Boolean(warning), hover];
}
