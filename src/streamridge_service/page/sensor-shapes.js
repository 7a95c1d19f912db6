// Shapes of the chart of one sensor, and the range of its vertical axis.
import { setAttributes, svg } from "./dom.js";
import { isNumber } from "./format.js";

export function hatch() {
  return svg("defs", {}, [
    svg(
      "pattern",
      {
        id: "hatch",
        width: 6,
        height: 6,
        patternUnits: "userSpaceOnUse",
        patternTransform: "rotate(45)",
      },
      [svg("path", { d: "M0 0V6", class: "hatch" })],
    ),
    svg("clipPath", { id: "inside" }, [svg("rect")]),
  ]);
}

export const axisMark = () => svg("g", {}, [svg("line", { class: "grid" }), svg("text")]);

export function placeMark(mark, line, text) {
  setAttributes(mark.firstElementChild, line);
  setAttributes(mark.lastElementChild, text);
}

export const crossAt = (x, y) => `M${x - 4} ${y - 4}l8 8m0-8l-8 8`;

// Returns the gaps without readings, from half a step before to half a step after.
export function gapPath(points, x, step, { top, bottom }) {
  let path = "";
  for (let i = 0; i < points.length; i += 1) {
    if (isNumber(points[i].actual)) continue;
    const start = points[i].at - step / 2;
    while (i + 1 < points.length && !isNumber(points[i + 1].actual)) i += 1;
    path += `M${x(start)} ${top}H${x(points[i].at + step / 2)}V${bottom}H${x(start)}Z`;
  }
  return path;
}

// Returns the range of the vertical axis; it starts at zero for counts of traffic.
export function range(points, week, coming) {
  const sane = points.filter((p) => p.status !== "implausible");
  const all = [
    ...sane.flatMap((p) => [p.actual, p.lower, p.upper, p.forecast]),
    ...week.map((p) => p.actual),
    ...coming.flatMap((p) => [p.lower, p.upper]),
  ].filter(isNumber);
  if (!all.length) return [0, 1];
  let [low, high] = [Math.min(...all), Math.max(...all)];
  if (low >= 0 && low < 0.5 * high) low = 0;
  const size = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const room = 0.05 * (high - low > 1e-6 * size ? high - low : size);
  return [low === 0 ? 0 : low - room, high + room];
}
