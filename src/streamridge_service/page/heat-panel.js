// Many values of one kind over time, one row each; darker means larger.
import { color, el, rem, setText } from "./dom.js";
import { bothTimes, isNumber, significant } from "./format.js";
import { listenToGestures } from "./gestures.js";
import { frame, setCaption } from "./panels.js";
import { linear, logarithmic } from "./scales.js";
import { tipOver } from "./tip.js";

export function heatPanel(shown) {
  const canvas = el("canvas", { class: "heat", role: "img" });
  const ends = el("div", { class: "ends" }, [el("span"), el("i"), el("span")]);
  const figure = frame("heat-panel", [canvas, ends]);
  const stop = new AbortController();
  let drawn = null;
  const redraw = () => drawn && drawHeat(canvas, drawn, shown);
  const resized = new ResizeObserver(redraw);
  resized.observe(canvas);
  shown.addEventListener("change", redraw, { signal: stop.signal });
  document.documentElement.addEventListener("look", redraw, { signal: stop.signal });
  tipOver(canvas, (event) => drawn && tellHeat(event, drawn, shown));
  listenToGestures(canvas, shown, () => {});
  canvas.addEventListener("dblclick", () => shown.reset());
  return {
    figure,
    destroy() {
      stop.abort();
      resized.disconnect();
    },
    show(told) {
      const { title, names, items, limits, bounds } = told;
      const values = items
        .flatMap((item) => names.map((name) => item.values[name]))
        .filter((value) => value > 0);
      const range = [Math.min(...values), Math.max(...values)];
      drawn = {
        ...told,
        tone: range[1] / range[0] > 1.01 ? logarithmic(range, [0.04, 1]) : () => 0.5,
      };
      const stuck = names.filter((name) => bounds[name]).length;
      const [low, high] = limits[names[0]] ?? [];
      const rows = "one row per feature";
      const within = isNumber(low)
        ? `${rows}; limits ${significant(low)} to ${significant(high)}`
        : rows;
      setCaption(
        figure,
        title,
        `${names.length} values`,
        stuck ? `⚠ ${stuck} at a limit · ${within}` : within,
      );
      figure.classList.toggle("at-limit", stuck > 0);
      const [from, , to] = ends.children;
      setText(from, significant(range[0]));
      setText(to, significant(range[1]));
      redraw();
    },
  };
}

function drawHeat(canvas, { names, items, tone, bounds }, { min, max }) {
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!width || !height) return;
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const brush = canvas.getContext("2d");
  brush.scale(scale, scale);
  const x = linear([min, max], [0, width]);
  const row = height / names.length;
  brush.fillStyle = color("accent");
  items.forEach((item, k) => {
    const left = Math.round(x(item.time));
    const right = Math.round(k + 1 < items.length ? x(items[k + 1].time) : width);
    names.forEach((name, i) => {
      brush.globalAlpha = item.values[name] > 0 ? tone(item.values[name]) : 0;
      brush.fillRect(
        left,
        Math.round(i * row),
        right - left,
        Math.round((i + 1) * row) - Math.round(i * row),
      );
    });
  });
  brush.globalAlpha = 1;
  brush.fillStyle = color("warn");
  brush.font = `${0.7 * rem()}px system-ui`;
  names.forEach((name, i) => {
    const sign = { upper: "▲", lower: "▼" }[bounds[name]];
    if (sign) brush.fillText(sign, width - 0.8 * rem(), (i + 0.9) * row);
  });
}

function tellHeat(event, { names, labels, items, zone }, { min, max }) {
  const { clientWidth: width, clientHeight: height } = event.currentTarget;
  const name =
    names[
      Math.min(names.length - 1, Math.max(0, Math.floor((event.offsetY / height) * names.length)))
    ];
  const at = linear([0, width], [min, max])(event.offsetX);
  const item = items.findLast(({ time }) => time <= at) ?? items[0];
  return width && item
    ? [
        bothTimes(item.time, zone),
        [labels(name), significant(item.values[name])],
      ]
    : null;
}
