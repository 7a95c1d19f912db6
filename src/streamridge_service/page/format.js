// Numbers and times as text for people.

const LOCALE = "en-GB";
const STYLES = {
  clock: { hour: "2-digit", minute: "2-digit" },
  day: { weekday: "short", hour: "2-digit", minute: "2-digit" },
  date: { day: "numeric", month: "short" },
  full: {
    weekday: "short",
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    timeZoneName: "short",
  },
  zone: { timeZoneName: "short" },
  parts: { hour: "numeric", minute: "numeric", day: "numeric" },
  offset: { timeZoneName: "longOffset" },
};
// The text of a figure before there is enough data.
export const NOT_YET = "not known yet";
// Changes of an error below this many percent count as chance.
const SLIGHT = 10;
const formatters = new Map();
const numbers = new Map();
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function formatter(style, zone) {
  const key = `${style} ${zone}`;
  if (!formatters.has(key)) formatters.set(key, makeFormatter(style, zone));
  return formatters.get(key);
}

function makeFormatter(style, zone) {
  try {
    return new Intl.DateTimeFormat(LOCALE, {
      ...STYLES[style],
      timeZone: zone || "UTC",
      hourCycle: "h23",
    });
  } catch {
    return makeFormatter(style, "UTC"); // This browser does not know the zone.
  }
}

const written = (style, ms, zone) =>
  isNumber(ms) ? formatter(style, zone).format(ms).replaceAll(",", "") : "–";
export const clockTime = (ms, zone) => written("clock", ms, zone);
export const dayTime = (ms, zone) => written("day", ms, zone);
export const dateOnly = (ms, zone) => written("date", ms, zone);
export const fullTime = (ms, zone) => written("full", ms, zone);
export const utcTime = (ms) =>
  isNumber(ms) ? `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC` : "–";
// Returns the first line of a tooltip.
export const bothTimes = (ms, zone) => [fullTime(ms, zone), utcTime(ms).slice(11)];

// Returns the time of day, with the weekday if it is not today.
export function nearTime(ms, zone, now) {
  const today = dateOnly(ms, zone) === dateOnly(now, zone);
  return today ? clockTime(ms, zone) : dayTime(ms, zone);
}

// Returns the name of a zone at a time, such as "CET".
export function zoneName(ms, zone) {
  const parts = isNumber(ms) ? formatter("zone", zone).formatToParts(ms) : [];
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
}

// Returns the time of day with the name of its zone.
export const zonedTime = (ms, zone) => `${clockTime(ms, zone)} ${zoneName(ms, zone)}`;

export function localParts(ms, zone) {
  const found = {};
  for (const { type, value } of formatter("parts", zone).formatToParts(ms))
    found[type] = Number(value);
  return found;
}

// Returns the milliseconds by which a zone is ahead of UTC.
export function offsetOf(ms, zone) {
  const parts = formatter("offset", zone).formatToParts(ms);
  const match = /GMT([+-])(\d+):(\d+)/.exec(
    parts.find((part) => part.type === "timeZoneName")?.value ?? "",
  );
  if (!match) return 0;
  return (match[1] === "-" ? -1 : 1) * (Number(match[2]) * 60 + Number(match[3])) * 60000;
}

// Returns a date whose parts in the browser's zone are those of the time in another zone.
export function localDate(ms, zone) {
  const local = new Date(ms + offsetOf(ms, zone));
  return new Date(
    ...["FullYear", "Month", "Date", "Hours", "Minutes", "Seconds"].map((part) =>
      local[`getUTC${part}`](),
    ),
  );
}

export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

export function number(value, digits = 0) {
  if (!isNumber(value)) return "–";
  if (!numbers.has(digits)) {
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    numbers.set(digits, new Intl.NumberFormat(LOCALE, options));
  }
  return numbers
    .get(digits)
    .format(value)
    .replace(/^-(?=[0.]*$)/, "");
}

// Returns a number for a narrow column: a zero has no decimals.
export const brief = (value, digits) => number(value, digits).replace(/^0\.0+$/, "0");

export const count = (value) => number(value, 0);

// Returns the number of decimals for a value whose band has this width. A band without width
// belongs to a value that never changed.
export function digitsFor(width, value = 0) {
  const size = Math.abs(value);
  if (width > 1e-6 * Math.max(1, size)) return digitsBelow(20 / width);
  return Number.isInteger(value) || !isNumber(value) ? 0 : digitsBelow(200 / size);
}

const digitsBelow = (power) => Math.min(6, Math.max(0, Math.ceil(Math.log10(power))));

export function percent(share) {
  if (!isNumber(share)) return "–";
  const value = 100 * share;
  return `${number(value, value > 0 && value < 1 ? 1 : 0)} %`;
}

// Returns three significant digits, with a power of ten instead of many zeros.
export function significant(value) {
  if (!isNumber(value)) return "–";
  if (value === 0) return "0";
  const power = Math.floor(Math.log10(Math.abs(value)) + 1e-12);
  if (power >= -3 && power < 5)
    return number(value, Math.max(0, 2 - power))
      .replace(/(\.\d*?)0+$/, "$1")
      .replace(/\.$/, "");
  const digits = String(Math.abs(power)).replace(/\d/g, (digit) => SUPERSCRIPTS[digit]);
  const mantissa = number(value / 10 ** power, 1).replace(/\.0$/, "");
  const ten = `10${power < 0 ? "⁻" : ""}${digits}`;
  return mantissa === "1" ? ten : `${mantissa} × ${ten}`;
}

// Returns a reason as a sentence, with a capital letter and a full stop.
export function sentence(text) {
  const words = (text ?? "").trim();
  if (!words) return "";
  return `${words[0].toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? "" : "."}`;
}

const plural = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
export const counted = plural;

// Returns a duration with two units, such as "2 min 14 s".
export function precise(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 2 * 86400)
    return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return plural(Math.floor(whole / 86400), "day");
}

// Returns a duration with one unit, such as "5 h".
export function rough(seconds) {
  const value = Math.abs(seconds);
  if (value < 60) return `${Math.round(value)} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  if (value < 2 * 86400) return `${Math.round(value / 3600)} h`;
  return plural(Math.round(value / 86400), "day");
}

// Returns a step for the phrase "the next …", such as "15 minutes" or "hour".
export function stepWords(seconds) {
  if (seconds % 86400 === 0) return seconds === 86400 ? "day" : `${seconds / 86400} days`;
  if (seconds % 3600 === 0) return seconds === 3600 ? "hour" : `${seconds / 3600} hours`;
  if (seconds % 60 === 0) return seconds === 60 ? "minute" : `${seconds / 60} minutes`;
  return seconds === 1 ? "second" : `${seconds} seconds`;
}

export function diskWords(days) {
  if (!isNumber(days)) return NOT_YET;
  if (days >= 3650) return "over 10 years";
  if (days >= 730) return `${number(days / 365, 1)} years`;
  return plural(Math.floor(days), "day");
}

// Returns a ratio of errors in words: "as usual", "31 % larger", "2.3 × as large".
export function comparedWords(ratio) {
  if (!isNumber(ratio)) return NOT_YET;
  if (ratio >= 2) return `${number(ratio, 1)} × as large`;
  const change = Math.round(100 * Math.abs(ratio - 1));
  if (change < SLIGHT) return "as usual";
  return `${change} % ${ratio > 1 ? "larger" : "smaller"}`;
}

export const parsed = (iso) => (iso ? Date.parse(iso) : NaN);
