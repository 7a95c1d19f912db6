// Common parts of the small charts of the tuning.
import { el, setText, svg } from "./dom.js";

// Charts are drawn at this size and stretched; lines keep their width.
export const [WIDTH, HEIGHT] = [300, 60];

export const wordsOf = (name) => name.replaceAll(/[._]/g, " ");

export function stretched(children) {
  return svg(
    "svg",
    {
      class: "plot",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    children,
  );
}

export function frame(kind, body) {
  const caption = el("figcaption", {}, [el("span", { class: "name" }), el("b"), el("small")]);
  return el("figure", { class: `panel ${kind}` }, [caption, ...body]);
}

export function setCaption(figure, name, value, note) {
  const [title, text, small] = figure.firstElementChild.children;
  setText(title, name);
  setText(text, value);
  setText(small, note);
}

// Returns the item that is valid at a position of the chart.
export function itemAt(items, x, event) {
  const { left, width } = event.currentTarget.getBoundingClientRect();
  const at = ((event.clientX - left) / width) * WIDTH;
  return items.findLast(({ time }) => x(time) <= at) ?? items[0];
}
