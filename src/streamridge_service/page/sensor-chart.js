// The chart of one sensor: measured values, forecasts and bands of a day.
import { byId, pool, rem, setAttributes, setText, svg } from "./dom.js";
import { clockTime, dayTime, digitsFor, fullTime, isNumber, number, utcTime } from "./format.js";
import { areaPath, hourTicks, linePath, linear, ticks } from "./scales.js";
import { axisMark, crossAt, gapPath, hatch, placeMark, range } from "./sensor-shapes.js";
import { sourceWords } from "./sources.js";
import { hideTip, showTip } from "./tip.js";

const LAYERS = [
  "future",
  "gaps",
  "week",
  "band",
  "band-coming",
  "forecast",
  "forecast-other",
  "actual",
  "coming",
  "odd",
  "edge",
  "cross",
];

export class SensorChart {
  #host = byId("chart");
  #data = null;
  #at = null;
  #scale = null;
  #parts = {};
  #svg;

  constructor() {
    this.#svg = svg("svg", { "aria-hidden": "true" }, [hatch(), svg("g"), svg("g")]);
    const area = svg("g", { "clip-path": "url(#inside)" });
    for (const name of LAYERS)
      area.append((this.#parts[name] = svg("path", { class: `layer-${name}` })));
    this.#parts.dots = svg("g", { class: "layer-dots" });
    this.#parts.label = svg("text", { class: "layer-label" });
    this.#parts.ahead = svg("text", { class: "axis ahead" }, "forecast");
    this.#parts.unit = svg("text", { class: "axis unit" });
    this.#svg.append(
      area,
      this.#parts.dots,
      this.#parts.label,
      this.#parts.ahead,
      this.#parts.unit,
    );
    this.#host.append(this.#svg);
    new ResizeObserver(() => this.draw()).observe(this.#host);
    this.#listen();
  }

  #listen() {
    this.#host.addEventListener("pointermove", (event) => this.#point(event.offsetX, event));
    this.#host.addEventListener("pointerleave", () => this.#leave());
    this.#host.addEventListener("blur", () => this.#leave());
    this.#host.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by || !this.#data) return;
      event.preventDefault();
      this.#walk(by);
    });
  }

  // `data`: from, to, newest, step (all in ms), zone, unit, points, week, coming.
  show(data) {
    this.#data = data;
    this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.#host;
    if (!this.#data || !width || !height) return;
    const { from, to, points, week, coming } = this.#data;
    const em = rem();
    const [low, high] = range(points, week, coming);
    const box = {
      left: em * Math.max(3.1, 0.9 + 0.48 * number(high, digitsFor((high - low) * 4)).length),
      right: width - em * Math.max(3.2, 0.9 + 0.6 * this.#first().length),
      top: 1.5 * em,
      bottom: height - 1.7 * em,
    };
    const x = linear([from, to], [box.left, box.right]);
    const y = linear([low, high], [box.bottom, box.top]);
    this.#scale = { x, y, box };
    setAttributes(this.#svg, { width, height, viewBox: `0 0 ${width} ${height}` });
    setAttributes(this.#svg.querySelector("#inside rect"), {
      x: box.left,
      y: box.top - 4,
      width: box.right - box.left + 8,
      height: box.bottom - box.top + 4,
    });
    this.#drawAxes(low, high, em);
    this.#drawData();
    if (this.#at !== null) this.#drawCross();
  }

  #drawAxes(low, high, em) {
    const { x, y, box } = this.#scale;
    const { from, to, zone, unit } = this.#data;
    const digits = digitsFor((high - low) * 4);
    const rows = ticks(low, high, Math.max(2, (box.bottom - box.top) / (3.2 * em)));
    const [, across, down] = this.#svg.children;
    pool(across, rows.length, axisMark).forEach((mark, i) => {
      placeMark(
        mark,
        { x1: box.left, x2: box.right, y1: y(rows[i]), y2: y(rows[i]) },
        { x: box.left - 0.5 * em, y: y(rows[i]) + 0.3 * em, class: "axis end" },
      );
      setText(mark.lastElementChild, number(rows[i], digits));
    });
    const hours = hourTicks(from, to, zone, (box.right - box.left) / (4 * em));
    pool(down, hours.length, axisMark).forEach((mark, i) => {
      const at = x(hours[i]);
      placeMark(
        mark,
        { x1: at, x2: at, y1: box.top, y2: box.bottom },
        { x: at, y: box.bottom + 1.2 * em, class: "axis middle" },
      );
      const midnight = clockTime(hours[i], zone) === "00:00";
      setText(
        mark.lastElementChild,
        midnight ? dayTime(hours[i], zone).slice(0, 3) : clockTime(hours[i], zone),
      );
    });
    setText(this.#parts.unit, unit);
    setAttributes(this.#parts.unit, { x: 0.2 * em, y: 0.85 * em });
  }

  #drawData() {
    const { points, week, step, coming } = this.#data;
    const { x, y, box } = this.#scale;
    this.#drawLine("actual", points, (p) => (p.status === "implausible" ? null : p.actual));
    this.#drawLine("week", week, (p) => p.actual);
    this.#drawLine("forecast", points, (p) => (p.source === "model" ? p.forecast : null));
    // The line of another source starts at the model's last point.
    const other = (p, i) => p.source !== "model" || (points[i + 1]?.source ?? "model") !== "model";
    this.#drawLine("forecast-other", points, (p, i) => (other(p, i) ? p.forecast : null));
    this.#drawBand("band", points);
    this.#drawShape("gaps", gapPath(points, x, step, box));
    const odd = points.filter((p) => p.status === "implausible");
    const inside = (p) => Math.min(box.bottom - 5, Math.max(box.top + 5, y(p.actual)));
    this.#drawShape("odd", odd.map((p) => crossAt(x(p.at), inside(p))).join(""));
    this.#drawFuture();
    setAttributes(this.#svg, {
      class: coming.every((p) => p.source === "model") ? null : "not-model",
    });
  }

  #drawShape(name, d) {
    setAttributes(this.#parts[name], { d });
  }

  #drawLine(name, points, valueOf) {
    const { x, y } = this.#scale;
    const placed = points.map((p, i) => {
      const value = valueOf(p, i);
      return [x(p.at), isNumber(value) ? y(value) : null];
    });
    this.#drawShape(name, linePath(placed));
  }

  #drawBand(name, points) {
    const { x, y } = this.#scale;
    const place = (value) => (isNumber(value) ? y(value) : null);
    this.#drawShape(name, areaPath(points.map((p) => [x(p.at), place(p.lower), place(p.upper)])));
  }

  // Future forecasts start at the last past forecast if it belongs to the step before.
  #drawFuture() {
    const { x, box } = this.#scale;
    const { points, coming, newest, to, step } = this.#data;
    const last = points.findLast((p) => isNumber(p.forecast));
    const near = last && coming.length && coming[0].at - last.at <= step;
    const joined = near ? [{ ...last, value: last.forecast }, ...coming] : coming;
    this.#drawBand("band-coming", joined);
    this.#drawLine("coming", joined, (p) => p.value);
    this.#drawShape("future", `M${x(newest)} ${box.top}H${x(to)}V${box.bottom}H${x(newest)}Z`);
    this.#drawShape("edge", `M${x(newest)} ${box.top - 6}V${box.bottom}`);
    setAttributes(this.#parts.ahead, { x: x(newest) + 4, y: box.top - 8 });
    this.#drawComing();
  }

  #drawComing() {
    const { x, y } = this.#scale;
    const { coming } = this.#data;
    const dots = pool(this.#parts.dots, coming.length, () => svg("circle"));
    dots.forEach((dot, i) =>
      setAttributes(dot, { cx: x(coming[i].at), cy: y(coming[i].value), r: i === 0 ? 4 : 2.5 }),
    );
    const first = coming[0];
    setText(this.#parts.label, this.#first());
    if (first)
      setAttributes(this.#parts.label, {
        x: x(coming.at(-1).at) + 8,
        y: y(first.value) + 0.35 * rem(),
      });
  }

  // The label of the next forecast.
  #first() {
    const [first] = this.#data.coming;
    return first ? number(first.value, this.#digits()) : "";
  }

  #point(offset, event) {
    const marks = this.#marks();
    if (!marks.length) return;
    const { x } = this.#scale;
    this.#at = marks.reduce((best, each) =>
      Math.abs(x(each) - offset) < Math.abs(x(best) - offset) ? each : best,
    );
    this.#drawCross();
    showTip(event.clientX, event.clientY, this.#lines());
  }

  #walk(by) {
    const marks = this.#marks();
    const here = marks.indexOf(this.#at);
    const i =
      here < 0
        ? marks.findLastIndex((at) => at <= this.#data.newest)
        : Math.min(marks.length - 1, Math.max(0, here + by));
    if (i < 0) return;
    this.#at = marks[i];
    this.#drawCross();
    const { left, top } = this.#host.getBoundingClientRect();
    showTip(left + this.#scale.x(this.#at), top + 20, this.#lines());
    setText(byId("chart-words"), this.#lines().flat().join(" "));
  }

  #leave() {
    this.#at = null;
    setAttributes(this.#parts.cross, { d: null });
    hideTip();
  }

  #marks() {
    return this.#data && this.#scale
      ? [...this.#data.points, ...this.#data.coming].map((p) => p.at)
      : [];
  }

  #drawCross() {
    const { x, box } = this.#scale;
    setAttributes(this.#parts.cross, { d: `M${x(this.#at)} ${box.top}V${box.bottom}` });
  }

  // All values have the same number of decimals, which follows from the widest band.
  #digits() {
    const { points, coming } = this.#data;
    return digitsFor(
      Math.max(...[...points, ...coming].map((p) => p.upper - p.lower).filter(isNumber)),
    );
  }

  #lines() {
    const { points, coming, week, zone, unit } = this.#data;
    const past = points.find((p) => p.at === this.#at);
    const next = coming.find((p) => p.at === this.#at);
    const before = week.find((p) => p.at === this.#at);
    const found = next ? { ...next, forecast: next.value } : past;
    const digits = this.#digits();
    const lines = [[fullTime(this.#at, zone), utcTime(this.#at).slice(11)]];
    if (past) lines.push(["measured", measuredWords(past, digits, unit)]);
    if (isNumber(found.forecast)) {
      lines.push(["forecast", number(found.forecast, digits)]);
      lines.push(["interval", `${number(found.lower, digits)} – ${number(found.upper, digits)}`]);
      lines.push(["made", sourceWords(found.source)]);
    }
    if (before && isNumber(before.actual)) lines.push(["last week", number(before.actual, digits)]);
    return lines;
  }
}

function measuredWords(point, digits, unit) {
  if (!isNumber(point.actual)) return "no reading";
  const odd = point.status === "implausible" ? ", implausible" : "";
  return `${number(point.actual, digits)} ${unit}${odd}`;
}
