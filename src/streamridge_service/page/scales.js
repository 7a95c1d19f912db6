// Scales, ticks and paths of the charts.
import { isNumber, localParts } from "./format.js";

export const linear =
  ([a, b], [c, d]) =>
  (value) =>
    c + ((value - a) / (b - a || 1)) * (d - c);

export function logarithmic([a, b], range) {
  const inner = linear([Math.log(a), Math.log(b)], range);
  return (value) => inner(Math.log(value));
}

// Returns round numbers that divide an interval into about `count` parts.
export function ticks(low, high, about) {
  const raw = (high - low) / Math.max(1, about);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const size = [1, 2, 5, 10].find((each) => each * power >= raw * 0.999) * power;
  const found = [];
  for (let i = Math.ceil(low / size - 1e-9); i * size <= high + size * 1e-9; i += 1)
    found.push(i * size);
  return found;
}

// Returns full local hours that divide an interval of about a day.
export function hourTicks(from, to, zone, about) {
  const stride =
    [1, 2, 3, 4, 6, 8, 12, 24].find((hours) => (to - from) / 3600000 / hours <= about) ?? 24;
  const quarter = 900000;
  const found = [];
  for (let at = Math.ceil(from / quarter) * quarter; at <= to; at += quarter) {
    const { hour, minute } = localParts(at, zone);
    if (minute === 0 && hour % stride === 0) found.push(at);
  }
  return found;
}

// Returns local midnights that divide an interval of some days.
export function dayTicks(from, to, zone, about) {
  const stride = Math.max(1, Math.ceil((to - from) / 86400000 / about));
  const hour = 3600000;
  const found = [];
  let days = 0;
  for (let at = Math.ceil(from / hour) * hour; at <= to; at += hour) {
    if (localParts(at, zone).hour !== 0) continue;
    if (days % stride === 0) found.push(at);
    days += 1;
  }
  return found;
}

const tidy = (value) => Math.round(value * 10) / 10;
const point = ([x, y]) => `${tidy(x)} ${tidy(y)}`;

// Splits points [x, y] into runs; a missing y ends a run.
export function runs(points) {
  const found = [];
  let run = [];
  for (const each of points) {
    if (each.slice(1).every(isNumber)) run.push(each);
    else if (run.length) {
      found.push(run);
      run = [];
    }
  }
  if (run.length) found.push(run);
  return found;
}

// Returns a line with gaps at missing points; a single point becomes a dot.
export function linePath(points) {
  return runs(points)
    .map((run) => (run.length === 1 ? `M${point(run[0])}h.01` : `M${run.map(point).join("L")}`))
    .join("");
}

// Returns the area between [x, low, high], with gaps at missing values.
export function areaPath(points) {
  return runs(points)
    .map((run) => {
      const above = run.map(([x, , high]) => point([x, high]));
      const below = run.map(([x, low]) => point([x, low])).reverse();
      return `M${above.concat(below).join("L")}Z`;
    })
    .join("");
}

// Returns a step line, which keeps its height until the next point.
export function stepPath(points, end) {
  return points
    .map(([x, y], i) => `${i === 0 ? "M" : "L"}${point([x, y])}H${tidy(points[i + 1]?.[0] ?? end)}`)
    .join("");
}
