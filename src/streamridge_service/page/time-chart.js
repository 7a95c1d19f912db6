// A chart over time, drawn by uPlot: axes, zoom, movement, a cursor with values, and keys.
import { byId, color, rem, setText } from "./dom.js";
import { clockTime, dateOnly, dayTime, fullTime, localDate } from "./format.js";
import { listenToGestures } from "./gestures.js";
import { hideTip, showTip } from "./tip.js";

const { uPlot } = globalThis;
const DAY = 86400000;
// Pixels below which a drag counts as a click.
const CLICK = 6;

export class TimeChart {
  #host;
  #shown;
  #options;
  #tell;
  #plot = null;
  #data = [[]];
  #zone = "UTC";
  #newest = Infinity;
  #at = null;
  #em = 0;
  #resized = new ResizeObserver(() => this.#fit());
  #stop = new AbortController();

  // `shown` is a TimeWindow. `options(em)` returns series, bands, hooks, axes, padding and the range
  // of the vertical axis for uPlot. `tell(i)` returns the lines of the tooltip at the i-th time.
  constructor(host, shown, options, tell) {
    this.#host = host;
    this.#shown = shown;
    this.#options = options;
    this.#tell = tell;
    const { signal } = this.#stop;
    this.#resized.observe(host);
    shown.addEventListener("change", () => this.#scale(), { signal });
    document.documentElement.addEventListener("look", () => this.#plot?.redraw(false), { signal });
    host.addEventListener("blur", () => this.#leave());
    host.addEventListener("keydown", (event) => this.#press(event));
  }

  // Draws columns: the times in milliseconds, then one column per series, with null for missing
  // values. Keys start at the newest time.
  show(data, zone, newest = Infinity) {
    this.#data = data;
    this.#zone = zone;
    this.#newest = newest;
    if (!this.#plot) return this.#build();
    this.#plot.batch(() => {
      this.#plot.setData(data, false);
      this.#scale();
    });
    if (this.#at !== null) this.#place(this.#at);
  }

  destroy() {
    this.#stop.abort();
    this.#resized.disconnect();
    this.#plot?.destroy();
  }

  #scale() {
    const { min, max } = this.#shown;
    this.#plot?.setScale("x", { min, max });
  }

  // uPlot cannot change the size of text later: it is built again.
  #fit() {
    const { clientWidth: width, clientHeight: height } = this.#host;
    if (!this.#plot || this.#em !== rem()) this.#build();
    else if (width && height) this.#plot.setSize({ width, height });
  }

  #build() {
    const { clientWidth: width, clientHeight: height } = this.#host;
    if (!this.#data[0].length || !width || !height) return;
    this.#plot?.destroy();
    this.#em = rem();
    const { range, axes, hooks, ...parts } = this.#options(this.#em);
    this.#plot = this.#host.plot = new uPlot(
      {
        ...parts,
        width,
        height,
        ms: 1,
        tzDate: (ms) => localDate(ms, this.#zone),
        legend: { show: false },
        cursor: this.#cursor(),
        scales: { x: { range: () => [this.#shown.min, this.#shown.max] }, y: { range } },
        axes: this.#axes(axes),
        hooks: { ...hooks, setCursor: [() => this.#point()], setSelect: [() => this.#select()] },
      },
      this.#data,
      this.#host,
    );
    listenToGestures(this.#plot.over, this.#shown, (left) => this.#plot.setCursor({ left, top: 0 }));
  }

  #axes([across, up]) {
    const em = this.#em;
    const look = {
      // uPlot understands whole pixels only.
      font: `${Math.round(0.78 * em)}px ${getComputedStyle(this.#host).fontFamily}`,
      stroke: () => color("soft"),
      grid: { stroke: () => color("line"), width: 1 },
      ticks: { show: false },
      gap: 0.4 * em,
    };
    const values = (_, times) => times.map((at) => this.#timeWords(at));
    return [
      { ...look, values, space: 4 * em, size: 1.6 * em, ...across },
      { ...look, space: 3 * em, ...up },
    ];
  }

  // A day starts with its name, or with its date if many days are shown.
  #timeWords(at) {
    if (at === null) return null;
    const time = clockTime(at, this.#zone);
    if (time !== "00:00") return time;
    const many = this.#shown.max - this.#shown.min > 8 * DAY;
    return many ? dateOnly(at, this.#zone) : dayTime(at, this.#zone).slice(0, 3);
  }

  // The cursor moves from time to time.
  #cursor() {
    const snapped = (plot, left) => plot.valToPos(plot.data[0][plot.posToIdx(left)], "x");
    return {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false, dist: CLICK },
      move: (plot, left, top) => [left < 0 ? left : snapped(plot, left), top],
      bind: {
        mousedown: (_, __, act) => (event) => event.button || event.shiftKey || act(event),
        dblclick: () => () => this.#shown.reset(),
      },
    };
  }

  #select() {
    const { left, width } = this.#plot.select;
    const [min, max] = [left, left + width].map((x) => this.#plot.posToVal(x, "x"));
    this.#plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.#shown.zoom(min, max);
  }

  #point() {
    const { idx, left, top } = this.#plot.cursor;
    const before = this.#at;
    this.#at = left >= 0 ? (this.#data[0][idx] ?? null) : null;
    if (this.#at !== null) {
      const area = this.#plot.over.getBoundingClientRect();
      showTip(area.left + left, area.top + top, this.#tell(idx));
    } else if (before !== null) hideTip();
  }

  #place(at) {
    const top = Math.max(0, this.#plot.cursor.top);
    this.#plot.setCursor({ left: this.#plot.valToPos(at, "x"), top });
  }

  #leave() {
    this.#plot?.setCursor({ left: -10, top: -10 });
  }

  #press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.#plot) return;
    const act = (event.shiftKey ? this.#shiftKeys : this.#keys)[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #keys = {
    ArrowLeft: () => this.#walk(-1),
    ArrowRight: () => this.#walk(1),
    Home: () => this.#walk(-Infinity),
    End: () => this.#walk(Infinity),
    "+": () => this.#zoomBy(1 / 2),
    "=": () => this.#zoomBy(1 / 2),
    "-": () => this.#zoomBy(2),
    0: () => this.#turn(() => this.#shown.reset()),
  };

  #shiftKeys = {
    ArrowLeft: () => this.#turn(() => this.#shown.move(-1 / 4)),
    ArrowRight: () => this.#turn(() => this.#shown.move(1 / 4)),
    "+": this.#keys["+"],
  };

  // Moves the cursor by a number of times, and says the values. The shown part follows.
  #walk(by) {
    const times = this.#data[0];
    const { min, max } = this.#shown;
    const start = times.findLastIndex((at) => at <= Math.min(max, this.#newest));
    const isFirst = this.#at === null && Number.isFinite(by);
    const wanted = isFirst ? start : times.indexOf(this.#at) + by;
    const i = Math.min(times.length - 1, Math.max(0, wanted));
    const beyond = Math.min(0, times[i] - min) + Math.max(0, times[i] - max);
    if (beyond) this.#plot.batch(() => this.#shown.move(beyond / (max - min)));
    this.#place(times[i]);
    this.#say(this.#tell(i).flat());
  }

  #zoomBy(factor) {
    const { min, max } = this.#shown;
    this.#turn(() => this.#shown.zoomBy(factor, this.#at ?? (min + max) / 2));
  }

  // Changes the shown part, and says it.
  #turn(act) {
    this.#plot.batch(act);
    if (this.#at !== null) this.#place(this.#at);
    const [from, to] = [this.#shown.min, this.#shown.max].map((at) => fullTime(at, this.#zone));
    this.#say([`Shown: ${from} to ${to}.`]);
  }

  #say(words) {
    setText(byId("chart-words"), words.join(" "));
  }
}
