// Part 7: events of the last hour, newest first, with time and reason.
import { now } from "./clock.js";
import { byId, el, pool, setAttributes, setText, show } from "./dom.js";
import { counted, nearTime, parsed, sentence, utcTime, zoneName } from "./format.js";
import { EVENTS, glyph, setGlyph } from "./glyphs.js";

const HOUR = 3600000;
const KEPT = 500;
const ASKED = 200;
const SHOWN = 20;
// If there are fewer events than this, older events are shown as well.
const LEAST = 4;
// Thousands of sensors may be retuned in an hour, and a whole road may fall silent. More events of
// one kind than this share a line.
const ALIKE = 8;
const ALIKE_CALM = 3;
const CALM = ["retuned", "new", "good", "inside"];
const WORDS = {
  good: "good now",
  silent: "fell silent",
  stale: "stale",
  constant: "constant",
  zero: "only zeros",
  implausible: "implausible",
  outside: "outside its interval",
  inside: "inside its interval again",
  degraded: "degraded",
  rebuilt: "rebuilt",
  retuned: "retuned",
  refused: "refused",
  clock_jump: "clock jumped",
  data_loss: "data lost",
  backup: "backed up",
  backup_failed: "backup failed",
  pruned: "pruned",
  prune_failed: "pruning failed",
  new: "new",
  archived: "archived",
  acknowledged: "acknowledged",
  alert_failed: "alert not delivered",
};

export class ChangesView {
  #app;
  #events = new Map();

  // `app` has `api`, `summary` and `select(id)`.
  constructor(app) {
    this.#app = app;
    setInterval(() => this.draw(), 30000);
  }

  async load() {
    const told = await this.#app.api.get("/v1/events", { limit: ASKED });
    for (const event of told.items) this.#events.set(String(event.id), event);
    this.draw();
  }

  add(event) {
    this.#events.set(String(event.id), event);
    this.draw();
  }

  draw() {
    const oldest = now() - HOUR;
    const known = [...this.#events.values()]
      .map((event) => ({ ...event, at: parsed(event.time) }))
      .sort((a, b) => b.at - a.at || b.id - a.id)
      .slice(0, KEPT);
    this.#events = new Map(known.map((event) => [String(event.id), event]));
    const recent = gathered(known.filter(({ at }) => at >= oldest));
    const before = gathered(known.filter(({ at }) => at < oldest)).slice(0, LEAST);
    const room = Math.max(0, LEAST - recent.length);
    const lines = [...recent.slice(0, SHOWN), ...before.slice(0, room)];
    const nodes = pool(byId("change-rows"), lines.length, () => this.#makeRow());
    nodes.forEach((node, i) => this.#fill(node, lines[i], i >= recent.length));
    show(byId("changes-empty"), lines.length === 0);
    const zone = zoneName(now(), this.#app.summary?.zone);
    const none = lines.length > 0 && recent.length === 0;
    const times = `times in ${zone}`;
    setText(byId("changes-zone"), none ? `none; earlier events, ${times}:` : times);
  }

  #makeRow() {
    const name = el("button", { type: "button", class: "link" });
    name.addEventListener("click", () => this.#app.select(name.dataset.id));
    return el("li", {}, [
      el("time"),
      glyph(),
      el("span", { class: "what" }, [el("b"), " ", name, " ", el("span")]),
    ]);
  }

  #fill(node, { at, kind, sensor, reason, alike }, isOld) {
    const [time, mark, what] = node.children;
    const [word, name, text] = what.children;
    node.classList.toggle("earlier", isOld);
    setText(time, nearTime(at, this.#app.summary?.zone, now()));
    setAttributes(time, { title: utcTime(at), datetime: new Date(at).toISOString() });
    setGlyph(mark, EVENTS, kind);
    setText(word, alike ? `${WORDS[kind] ?? kind}, ${alike}; latest:` : (WORDS[kind] ?? kind));
    show(name, Boolean(sensor));
    setText(name, sensor);
    name.dataset.id = sensor ?? "";
    setText(text, sentence(reason));
  }
}

// Returns one line per event; frequent events of one kind share the line of the latest.
function gathered(events) {
  const kinds = Map.groupBy(events, ({ kind }) => kind);
  const often = (kind) => kinds.get(kind).length > (CALM.includes(kind) ? ALIKE_CALM : ALIKE);
  const latest = events.filter((event) => !often(event.kind) || event === kinds.get(event.kind)[0]);
  return latest.map((event) =>
    often(event.kind) ? { ...event, alike: howMany(kinds.get(event.kind)) } : event,
  );
}

function howMany(events) {
  const sensors = new Set(events.map(({ sensor }) => sensor).filter(Boolean));
  return sensors.size ? counted(sensors.size, "sensor") : counted(events.length, "time");
}
