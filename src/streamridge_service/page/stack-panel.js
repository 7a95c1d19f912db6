// Shares over time as a stacked area, with their names below.
import { color, el, pool, setText } from "./dom.js";
import { bothTimes, percent } from "./format.js";
import { StepChart, frame, setCaption } from "./panels.js";

// Distinguishable colours.
const PARTS = 8;

export function stackPanel(shown) {
  let told = null;
  // The highest sum is drawn first; each lower one covers it.
  const parts = Array.from({ length: PARTS }, (_, i) => PARTS - 1 - i);
  const chart = new StepChart(
    shown,
    {
      series: parts.map((i) => ({
        fill: () => color(`part-${i}`),
        width: 0,
        points: { show: false },
      })),
      range: () => [0, 1],
    },
    ({ time, shares }) => [
      bothTimes(time, told.zone),
      ...told.names.map((name) => [told.labels(name), percent(shares[name])]),
    ],
  );
  const legend = el("ul", { class: "parts" });
  const figure = frame("stack-panel", [chart.host, legend]);
  return {
    figure,
    destroy: () => chart.destroy(),
    show({ title, note, names, labels, items, span, zone }) {
      const kept = names
        .filter((name) => items.some(({ shares }) => shares[name] > 0.0005))
        .slice(0, PARTS);
      told = { names: kept, labels, zone };
      const sum = ({ shares }, i) =>
        kept.slice(0, i + 1).reduce((total, name) => total + (shares[name] ?? 0), 0);
      const sums = parts.map((i) => (item) => (i < kept.length ? Math.min(1, sum(item, i)) : null));
      chart.show(items, span[1], sums, zone);
      setCaption(figure, title, "", note);
      const last = items.at(-1).shares;
      const rows = pool(legend, kept.length, () => el("li", {}, [el("i"), el("span"), el("b")]));
      kept.forEach((name, i) => {
        const [key, text, value] = rows[i].children;
        key.className = `part-${i}`;
        setText(text, labels(name));
        setText(value, percent(last[name]));
      });
    },
  };
}
