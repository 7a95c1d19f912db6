// One hyperparameter over time, with its position between its limits.
import { el, setAttributes, setText, svg } from "./dom.js";
import { fullTime, isNumber, significant } from "./format.js";
import { HEIGHT, WIDTH, frame, itemAt, setCaption, stretched, wordsOf } from "./panels.js";
import { linear, logarithmic, stepPath } from "./scales.js";
import { tipOver } from "./tip.js";

const WIDE = 10;
const PAD = 6;

export function linePanel() {
  const plot = stretched(["limit", "marks", "line"].map((name) => svg("path", { class: name })));
  const gauge = svg("svg", { class: "gauge", "aria-hidden": "true" }, [
    svg("line", { x1: "2%", x2: "98%", y1: "50%", y2: "50%" }),
    svg("circle", { cy: "50%", r: 4 }),
  ]);
  const title = "Position between the limits";
  const limits = el("div", { class: "limits", title }, [el("span"), gauge, el("span")]);
  const figure = frame("line-panel", [plot, limits]);
  let shown = null;
  tipOver(plot, (event) => shown && tell(event, shown));
  return {
    figure,
    show(told) {
      shown = told;
      const value = told.items.at(-1).values[told.name];
      draw(plot, told);
      setCaption(figure, wordsOf(told.name), significant(value), noteOf(told));
      figure.classList.toggle("at-limit", Boolean(told.bound));
      showGauge(limits, value, ...(told.limits ?? []));
    },
  };
}

function draw(plot, { name, items, span, limits = [], bound }) {
  const known = items.filter(({ values }) => isNumber(values[name]));
  const x = linear(span, [0, WIDTH]);
  const reached = { lower: limits[0], upper: limits[1] }[bound];
  const y = vertical([...known.map(({ values }) => values[name]), reached].filter(isNumber));
  const points = known.map(({ time, values }) => [x(time), y(values[name])]);
  const near = limits.filter((limit) => isNumber(limit) && y(limit) >= 0 && y(limit) <= HEIGHT);
  const [edges, marks, line] = plot.children;
  setAttributes(edges, { d: near.map((limit) => `M0 ${y(limit)}H${WIDTH}`).join("") });
  setAttributes(marks, { d: points.map(([at]) => `M${at} ${HEIGHT}v-4`).join("") });
  setAttributes(line, { d: stepPath(points, WIDTH) });
}

function noteOf({ name, bound, frozen }) {
  if (frozen) return "frozen by an operator";
  return bound ? `⚠ at its ${bound} limit` : hint(name);
}

function tell(event, { name, items, span, zone }) {
  const item = itemAt(items, linear(span, [0, WIDTH]), event);
  const value = significant(item.values[name]);
  return [
    [fullTime(item.time, zone), ""],
    [wordsOf(name), value],
    ["changed by", item.kind],
  ];
}

function showGauge(node, value, low, high) {
  const [from, gauge, to] = node.children;
  const known = isNumber(value) && isNumber(low) && isNumber(high);
  setText(from, known ? significant(low) : "");
  setText(to, known ? significant(high) : "");
  node.hidden = !known;
  if (!known) return;
  const scale =
    low > 0 && high / low > WIDE ? logarithmic([low, high], [2, 98]) : linear([low, high], [2, 98]);
  setAttributes(gauge.lastElementChild, { cx: `${Math.min(98, Math.max(2, scale(value)))}%` });
}

// Returns the vertical scale: logarithmic if values differ by more than a factor of ten.
function vertical(values) {
  let [low, high] = [Math.min(...values), Math.max(...values)];
  const range = [HEIGHT - PAD, PAD];
  if (low > 0 && high / low > WIDE) return logarithmic([low, high], range);
  // The scale spans at least a tenth of the value, so that small changes look small.
  const least = 0.1 * Math.max(Math.abs(low), Math.abs(high)) || 1;
  if (high - low < least) [low, high] = [(low + high - least) / 2, (low + high + least) / 2];
  return linear([low, high], range);
}

const HINTS = [
  [/regularization$/, "larger values give smoother forecasts"],
  [/rate$/, "how fast old readings lose weight"],
  [/day_forgetting$/, "how fast the usual day changes"],
  [/week_forgetting$/, "how fast the usual week changes"],
  [/period$/, "length of the cycle, in steps"],
  [/scale/, "larger values use only similar rows"],
];

const hint = (name) => HINTS.find(([pattern]) => pattern.test(name))?.[1] ?? "";
