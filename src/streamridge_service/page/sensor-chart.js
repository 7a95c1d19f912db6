// The chart of one sensor: measured values, forecasts, intervals and last week's values.
import { byId, color, setText } from "./dom.js";
import { bothTimes, digitsFor, isNumber, number } from "./format.js";
import { paintFuture, paintGaps, paintOdd } from "./sensor-shapes.js";
import { sourceWords } from "./sources.js";
import { TimeChart } from "./time-chart.js";
import { TimeWindow } from "./time-window.js";

// The shortest time that can be shown, in steps.
const LEAST_STEPS = 4;

export class SensorChart {
  shown = new TimeWindow();
  #chart;
  #data = null;
  #rows = [];

  constructor() {
    const tell = (i) => this.#lines(this.#rows[i]);
    this.#chart = new TimeChart(byId("chart"), this.shown, (em) => this.#options(em), tell);
  }

  // `data`: from, to, newest, step (all in ms), zone, unit, points, week, coming.
  show(data) {
    const { from, to, step, zone, newest, unit } = data;
    this.#data = data;
    this.#rows = rowsOf(data);
    this.shown.cover(from, to, LEAST_STEPS * step);
    setText(byId("chart-unit"), unit);
    this.#chart.show(columnsOf(this.#rows), zone, newest);
  }

  // Series are in the order of `columnsOf`; later ones are drawn over earlier ones.
  #options(em) {
    const line = (tone, options) => ({ stroke: () => color(tone), width: 1.8, ...options });
    const edge = { width: 0, points: { show: false } };
    const filter = (plot, i) => this.#dots(plot.data[i]);
    const points = { show: true, size: 0.4 * em, filter, fill: () => color("card") };
    return {
      padding: [1.5 * em, 1.3 * em, 0, 0],
      range: (_, low, high) => rangeOf(low, high),
      axes: [{}, { values: valueWords, size: (_, words) => widthOf(words, em) }],
      series: [
        {},
        line("soft", { width: 1.4, dash: [2, 4], points: { show: false } }),
        { ...edge, alpha: 0.2 },
        edge,
        line("accent", { points }),
        line("warn", { points, dash: [5, 4] }),
        line("ink", { points, width: 2 }),
      ],
      bands: [{ series: [2, 3], fill: () => color("accent") }],
      hooks: {
        drawAxes: [
          (plot) => paintGaps(plot, this.#data),
          (plot) => paintFuture(plot, this.#data.newest, em),
        ],
        draw: [(plot) => paintOdd(plot, this.#data.points)],
      },
    };
  }

  // Returns future values, and values without neighbours, which a line cannot show.
  #dots(values) {
    const alone = (i) => !isNumber(values[i - 1]) && !isNumber(values[i + 1]);
    return this.#rows.flatMap(({ at }, i) =>
      isNumber(values[i]) && (at > this.#data.newest || alone(i)) ? [i] : [],
    );
  }

  // All values have the same number of decimals, which follows from the widest interval.
  #lines({ at, actual, status, forecast, lower, upper, source, before }) {
    const { newest, zone, unit } = this.#data;
    const widths = this.#rows.map((row) => row.upper - row.lower).filter(isNumber);
    const words = (value) => number(value, digitsFor(Math.max(...widths)));
    const lines = [bothTimes(at, zone)];
    const odd = status === "implausible" ? ", implausible" : "";
    const measured = isNumber(actual) ? `${words(actual)} ${unit}${odd}` : "no reading";
    if (at <= newest) lines.push(["measured", measured]);
    if (isNumber(forecast)) {
      lines.push(["forecast", words(forecast)]);
      lines.push(["interval", `${words(lower)} – ${words(upper)}`]);
      lines.push(["made", sourceWords(source)]);
    }
    if (isNumber(before)) lines.push(["last week", words(before)]);
    return lines;
  }
}

// Returns a row for every step: past, then future, with last week's value. An empty row separates
// forecasts that do not follow the past.
function rowsOf({ points, coming, week, newest, step }) {
  const grid = (at) => Math.round(at / step);
  const before = new Map(week.map(({ at, actual }) => [grid(at), actual]));
  const apart = coming.length && coming[0].at - newest > step ? [{ at: newest + step }] : [];
  const next = coming.map((each) => ({ ...each, forecast: each.value }));
  return [...points, ...apart, ...next].map((row) => ({ ...row, before: before.get(grid(row.at)) }));
}

// Returns the times and the values of each line. The line of another source than the model is joined
// to the model's line at both ends.
export function columnsOf(rows) {
  const column = (valueOf) => rows.map((row, i) => finite(valueOf(row, i)));
  const isOther = (row) => (row?.source ?? "model") !== "model";
  return [
    rows.map(({ at }) => at),
    column(({ before }) => before),
    column(({ upper }) => upper),
    column(({ lower }) => lower),
    column((row) => (isOther(row) ? null : row.forecast)),
    column((row, i) => (rows.slice(Math.max(0, i - 1), i + 2).some(isOther) ? row.forecast : null)),
    column(({ actual, status }) => (status === "implausible" ? null : actual)),
  ];
}

const finite = (value) => (isNumber(value) ? value : null);

// Returns the range of the vertical axis; it starts at zero for counts of traffic.
function rangeOf(least, most) {
  if (!isNumber(least)) return [0, 1];
  const low = least >= 0 && least < 0.5 * most ? 0 : least;
  const size = Math.max(Math.abs(low), Math.abs(most)) || 1;
  const room = 0.05 * (most - low > 1e-6 * size ? most - low : size);
  return [low === 0 ? 0 : low - room, most + room];
}

function valueWords({ scales: { y } }, values) {
  return values.map((value) => number(value, digitsFor((y.max - y.min) * 4)));
}

const widthOf = (words, em) =>
  em * Math.max(3, 1 + 0.48 * Math.max(0, ...(words ?? []).map((text) => text.length)));
