// Part 5: a sensor's hyperparameters over the last 30 days.
import { now } from "./clock.js";
import { byId, setAttributes, setText, show } from "./dom.js";
import { isNumber, nearTime, parsed, rough, significant } from "./format.js";
import { wordsOf } from "./panels.js";
import { TimeWindow, offerReset } from "./time-window.js";
import { planned } from "./tuning-plan.js";

const HOUR = 3600000;
const DAYS = 30 * 24 * HOUR;
const NO_MODEL =
  "There is no model yet. It starts after about three days of readings and then tunes itself; " +
  "until then forecasts repeat earlier readings.";

export class TuningView {
  #app;
  #panels = new Map();
  #shown = new TimeWindow();
  #stop = new AbortController();
  #told = null;
  #id = null;

  // `app` has `api` and `summary`.
  constructor(app) {
    this.#app = app;
    offerReset(byId("tuning-whole"), this.#shown);
  }

  // Updates the ages.
  tick() {
    this.#drawWhen();
  }

  async show(id) {
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    if (id !== this.#id) this.#shown.reset();
    this.#id = id;
    setAttributes(byId("tuning"), { "aria-busy": true });
    const told = await this.#app.api.get(
      `/v1/sensors/${encodeURIComponent(id)}/tuning`,
      {},
      signal,
    );
    if (signal.aborted) return;
    setAttributes(byId("tuning"), { "aria-busy": false });
    this.#told = { zone: this.#app.summary.zone, ...told };
    this.#draw();
  }

  #draw() {
    const told = this.#told;
    const from = now() - DAYS;
    const items = told.items.map((item) => ({ ...item, time: parsed(item.time) }));
    const recent = items.filter(({ time }) => time >= from);
    const before = items.findLast(({ time }) => time < from);
    const path = before ? [{ ...before, time: from }, ...recent] : recent;
    show(byId("tuning-empty"), path.length === 0);
    setText(byId("tuning-empty"), NO_MODEL);
    this.#drawWhen();
    this.#drawWarning();
    const newest = Math.max(now(), path.at(-1)?.time ?? 0);
    const span = [Math.max(from, path[0]?.time ?? 0), newest];
    this.#shown.cover(...span, HOUR);
    this.#drawPanels(path.length ? planned(told, path, span) : []);
  }

  #drawPanels(plan) {
    const keys = new Set(plan.map(([key]) => key));
    for (const [key, panel] of this.#panels) {
      if (keys.has(key)) continue;
      panel.figure.remove();
      panel.destroy();
      this.#panels.delete(key);
    }
    for (const [key, make, told] of plan) {
      if (!this.#panels.has(key)) {
        const panel = make(this.#shown);
        this.#panels.set(key, panel);
        byId("panels").append(panel.figure);
      }
      this.#panels.get(key).show(told);
    }
  }

  #drawWhen() {
    if (!this.#told) return;
    const { last, next, zone } = this.#told;
    const [then, soon] = [parsed(last), parsed(next)];
    const time = (at) =>
      `${rough((now() - at) / 1000)}${at > now() ? "" : " ago"} (${nearTime(at, zone, now())})`;
    const words = [Number.isNaN(then) ? "Not tuned yet" : `Last tuned ${time(then)}`];
    if (!Number.isNaN(soon))
      words.push(soon <= now() ? "next is due now" : `next in ${time(soon)}`);
    setText(byId("tuning-when"), `${words.join(", ")}. A dot marks each tuning of the last 30 days.`);
  }

  #drawWarning() {
    const { at_bound: bounds = {}, limits = {} } = this.#told;
    const stuck = Object.entries(bounds);
    show(byId("tuning-warning"), stuck.length > 0);
    const words = stuck.slice(0, 3).map(([name, side]) => {
      const limit = limits[name]?.[side === "lower" ? 0 : 1];
      const where = isNumber(limit) ? ` (${significant(limit)})` : "";
      return `${wordsOf(name)} is at its ${side} limit${where}`;
    });
    const rest = stuck.length > 3 ? `, and ${stuck.length - 3} more` : "";
    setText(
      byId("tuning-warning"),
      `⚠ ${words.join(", ")}${rest}. A wider limit might improve the forecasts.`,
    );
  }
}
