// Shares over time as a stacked area, with their names below.
import { el, pool, setAttributes, setText, svg } from "./dom.js";
import { fullTime, percent } from "./format.js";
import { HEIGHT, WIDTH, frame, itemAt, setCaption, stretched } from "./panels.js";
import { linear } from "./scales.js";
import { tipOver } from "./tip.js";

// Distinguishable colours.
const PARTS = 8;

export function stackPanel() {
  const plot = stretched([]);
  const legend = el("ul", { class: "parts" });
  const figure = frame("stack-panel", [plot, legend]);
  let tell = () => null;
  tipOver(plot, (event) => tell(event));
  return {
    figure,
    show({ title, note, names, labels, items, span, zone }) {
      const x = linear(span, [0, WIDTH]);
      const shown = names
        .filter((name) => items.some(({ shares }) => shares[name] > 0.0005))
        .slice(0, PARTS);
      const paths = pool(plot, shown.length, () => svg("path"));
      shown.forEach((name, i) =>
        setAttributes(paths[i], { class: `part-${i}`, d: layer(items, shown, i, x) }),
      );
      setCaption(figure, title, "", note);
      const last = items.at(-1)?.shares ?? {};
      const rows = pool(legend, shown.length, () => el("li", {}, [el("i"), el("span"), el("b")]));
      shown.forEach((name, i) => {
        const [key, text, value] = rows[i].children;
        key.className = `part-${i}`;
        setText(text, labels(name));
        setText(value, percent(last[name]));
      });
      tell = (event) => {
        const item = itemAt(items, x, event);
        return (
          item && [
            [fullTime(item.time, zone), ""],
            ...shown.map((name) => [labels(name), percent(item.shares[name])]),
          ]
        );
      };
    },
  };
}

// Returns one layer of the stack: along its top from left to right, back along its bottom.
function layer(items, names, i, x) {
  const y = linear([0, 1], [HEIGHT, 0]);
  const sum = ({ shares }, until) =>
    names.slice(0, until).reduce((total, name) => total + (shares[name] ?? 0), 0);
  const edge = (until) =>
    items.flatMap((item, k) =>
      [x(item.time), x(items[k + 1]?.time) || WIDTH].map(
        (at) => `${at.toFixed(1)} ${y(Math.min(1, sum(item, until))).toFixed(1)}`,
      ),
    );
  return items.length
    ? `M${edge(i + 1)
        .concat(edge(i).reverse())
        .join("L")}Z`
    : null;
}
