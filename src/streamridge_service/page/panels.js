// Common parts of the small charts of the tuning.
import { el, setAttributes, setText } from "./dom.js";
import { TimeChart } from "./time-chart.js";

const { stepped } = globalThis.uPlot.paths;

export const wordsOf = (name) => name.replaceAll(/[._]/g, " ");

export function frame(kind, body) {
  const caption = el("figcaption", {}, [el("span", { class: "name" }), el("b"), el("small")]);
  return el("figure", { class: `panel ${kind}` }, [caption, ...body]);
}

export function setCaption(figure, name, value, note) {
  const [title, text, small] = figure.firstElementChild.children;
  setText(title, name);
  setText(text, value);
  setText(small, note);
  const plot = figure.children[1];
  setAttributes(plot, { "aria-label": `${name} over 30 days. ${value} ${note}`.trim() });
}

// A chart of values that stay until the next item; `tell(item)` returns the lines of the tooltip.
export class StepChart {
  host = el("div", { class: "plot", tabindex: 0, role: "img" });
  #chart;
  #items = [];

  // `shown` is a TimeWindow; `series`, `range` and `hooks` are options of uPlot.
  constructor(shown, { series, range, hooks }, tell) {
    const paths = stepped({ align: 1 });
    const options = (em) => ({
      padding: [0.3 * em, 0.3 * em, 0, 0.3 * em],
      axes: [
        {
          grid: { show: false },
          gap: 0.2 * em,
          size: 1.2 * em,
          space: 3.2 * em,
          filter: (plot, times) => fitting(plot, times, 1.3 * em),
        },
        { show: false },
      ],
      series: [{}, ...series.map((each) => ({ paths, ...each }))],
      range,
      hooks,
    });
    const last = () => this.#items.length - 1;
    this.#chart = new TimeChart(this.host, shown, options, (i) =>
      tell(this.#items[Math.min(i, last())]),
    );
  }

  // Draws a column for each function of an item; the last item is valid until the end.
  show(items, end, valuesOf, zone) {
    this.#items = items;
    const held = [...items, { ...items.at(-1), time: end }];
    const columns = [({ time }) => time, ...valuesOf].map((valueOf) => held.map(valueOf));
    this.#chart.show(columns, zone);
  }

  destroy() {
    this.#chart.destroy();
  }
}

// Leaves out labels that the ends of the chart would cut off.
function fitting(plot, times, room) {
  const end = plot.bbox.width / devicePixelRatio - room;
  const fits = (left) => left >= room && left <= end;
  return times.map((at) => (fits(plot.valToPos(at, "x")) ? at : null));
}
