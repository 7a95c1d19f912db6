// One hyperparameter over time, with its position between its limits.
import { color, el, setAttributes, setText, svg } from "./dom.js";
import { bothTimes, isNumber, significant } from "./format.js";
import { StepChart, frame, setCaption, wordsOf } from "./panels.js";
import { linear, logarithmic } from "./scales.js";

const WIDE = 10;

export function linePanel(shown) {
  let told = null;
  const accent = () => color("accent");
  const chart = new StepChart(
    shown,
    {
      series: [{ stroke: accent, width: 2, points: { show: true, size: 4, fill: accent } }],
      range: (_, low, high) => rangeOf(low, high, told),
      hooks: { drawAxes: [(plot) => paintLimits(plot, told)] },
    },
    (item) => [
      bothTimes(item.time, told.zone),
      [wordsOf(told.name), significant(item.values[told.name])],
      ["changed by", item.kind],
    ],
  );
  const gauge = svg("svg", { class: "gauge", "aria-hidden": "true" }, [
    svg("line", { x1: "2%", x2: "98%", y1: "50%", y2: "50%" }),
    svg("circle", { cy: "50%", r: 4 }),
  ]);
  const title = "Position between the limits";
  const limits = el("div", { class: "limits", title }, [el("span"), gauge, el("span")]);
  const figure = frame("line-panel", [chart.host, limits]);
  return {
    figure,
    destroy: () => chart.destroy(),
    show(data) {
      const { name, items, span, zone } = data;
      const values = items.map((item) => item.values[name]).filter(isNumber);
      told = { ...data, height: heightOf(values) };
      const value = items.at(-1).values[name];
      const heights = ({ values }) => (isNumber(values[name]) ? told.height(values[name]) : null);
      chart.show(items, span[1], [heights], zone);
      setCaption(figure, wordsOf(name), significant(value), noteOf(data));
      figure.classList.toggle("at-limit", Boolean(data.bound));
      showGauge(limits, value, ...(data.limits ?? []));
    },
  };
}

const isWide = (low, high) => low > 0 && high / low > WIDE;

// Returns the logarithm if values differ by more than a factor of ten.
const heightOf = (values) =>
  isWide(Math.min(...values), Math.max(...values)) ? Math.log : (value) => value;

// Returns the vertical range. It includes a limit that is reached, and spans at least a tenth of the
// value, so that small changes look small.
function rangeOf(least, most, { height, limits = [], bound }) {
  const reached = { lower: limits[0], upper: limits[1] }[bound];
  const all = [least, most, isNumber(reached) ? height(reached) : null].filter(isNumber);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const size = 0.1 * (height === Math.log ? 1 : Math.max(Math.abs(low), Math.abs(high)) || 1);
  const room = 0.1 * (high - low) + Math.max(0, size - (high - low)) / 2;
  return [low - room, high + room];
}

function paintLimits({ ctx, bbox, scales, valToPos }, { height, limits = [] }) {
  const pixels = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = color("warn");
  ctx.lineWidth = pixels;
  ctx.setLineDash([4 * pixels, 3 * pixels]);
  for (const limit of limits.filter(isNumber).map(height)) {
    if (!(limit >= scales.y.min && limit <= scales.y.max)) continue;
    ctx.strokeRect(bbox.left, valToPos(limit, "y", true), bbox.width, 0);
  }
  ctx.restore();
}

function noteOf({ name, bound, frozen }) {
  if (frozen) return "frozen by an operator";
  return bound ? `⚠ at its ${bound} limit` : hint(name);
}

function showGauge(node, value, low, high) {
  const [from, gauge, to] = node.children;
  const known = isNumber(value) && isNumber(low) && isNumber(high);
  setText(from, known ? significant(low) : "");
  setText(to, known ? significant(high) : "");
  node.hidden = !known;
  if (!known) return;
  const scale = (isWide(low, high) ? logarithmic : linear)([low, high], [2, 98]);
  setAttributes(gauge.lastElementChild, { cx: `${Math.min(98, Math.max(2, scale(value)))}%` });
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
