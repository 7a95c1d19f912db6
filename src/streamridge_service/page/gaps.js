// Part 6: a strip per sensor with one cell per hour, grouped so that a failed line is visible.
import { now } from "./clock.js";
import { byId, el, pool, setAttributes, setText, show, svg, throttled } from "./dom.js";
import {
  bothTimes,
  clockTime,
  count,
  counted,
  dayTime,
  localParts,
  parsed,
  zoneName,
} from "./format.js";
import { tipOver } from "./tip.js";

const HOURS = 48;
const HOUR = 3600000;
const LABEL_HOURS = 8;
const LIMIT = 120;
const ALONE = "without a group";

export class GapsView {
  #app;
  #cursor = null;
  #next = null;

  // `app` has `api`, `guard(promise)`, `summary`, `state` (the filter) and `select(id)`.
  constructor(app) {
    this.#app = app;
    this.refresh = throttled(30000, () => app.guard(this.load()));
    byId("gaps-next").addEventListener("click", () => {
      this.#cursor = this.#next;
      app.guard(this.load());
    });
  }

  restart() {
    this.#cursor = null;
    return this.load();
  }

  async load() {
    const { api, state } = this.#app;
    const end = Math.ceil(this.#newest() / HOUR + 1e-9) * HOUR;
    const span = { from: iso(end - HOURS * HOUR), to: iso(end) };
    const told = await api.get("/v1/gaps", { ...span, limit: LIMIT, state, cursor: this.#cursor });
    this.#next = told.cursor ?? null;
    this.#draw(told);
  }

  #newest() {
    const newest = parsed(this.#app.summary?.newest);
    return Number.isNaN(newest) ? now() : newest;
  }

  #draw(told) {
    const from = parsed(told.from);
    const rows = told.items.map((item) => judged(item, from, this.#newest()));
    rows.sort((a, b) => b.missing - a.missing || inOrder(a, b));
    const groups = [...Map.groupBy(rows, ({ group }) => group ?? ALONE)].map(([name, members]) => ({
      name,
      members,
      missing: sum(members, "missing"),
      expected: sum(members, "expected"),
    }));
    groups.sort(
      (a, b) =>
        (a.name === ALONE) - (b.name === ALONE) || b.missing / b.expected - a.missing / a.expected,
    );
    const nodes = pool(byId("groups"), groups.length, () => this.#makeGroup());
    groups.forEach((group, i) => this.#fillGroup(nodes[i], group, from, told.hours));
    this.#drawWords(rows, told.total ?? this.#app.summary.total);
  }

  #drawWords(rows, total) {
    const missing = sum(rows, "missing");
    const share = missing ? `${counted(missing, "reading")} missing` : "no reading missing";
    const part = rows.length < total ? `, in ${count(rows.length)} of ${count(total)} sensors` : "";
    const zone = zoneName(now(), this.#app.summary.zone);
    const all = count(sum(rows, "expected"));
    const words = `${share} of ${all}${part}. Most missing first; times in ${zone}.`;
    setText(byId("gaps-words"), rows.length ? words : "");
    show(byId("gaps-empty"), rows.length === 0);
    setText(
      byId("gaps-empty"),
      this.#app.state
        ? `No sensor is ${this.#app.state} now.`
        : "The first readings will appear here.",
    );
    show(byId("gaps-next"), this.#next !== null || this.#cursor !== null);
    setText(byId("gaps-next"), this.#next === null ? "Back to the first sensors" : "Next sensors");
  }

  #makeGroup() {
    const axis = svg("svg", { class: "gap-axis", "aria-hidden": "true" });
    return el("figure", { class: "gap-group" }, [
      el("figcaption", {}, [el("b"), el("span")]),
      el("div", { class: "gap-row gap-head" }, [el("span"), axis]),
      el("div", { class: "gap-rows" }),
    ]);
  }

  #fillGroup(node, { name, members, missing, expected }, from, hours) {
    const [caption, head, body] = node.children;
    const dead = Math.min(...members.map(({ trailing }) => trailing));
    const down = members.length > 1 && dead >= 1;
    setText(caption.firstElementChild, name);
    setText(
      caption.lastElementChild,
      down
        ? `⚠ no reading from any of ${members.length} sensors for ${dead} h`
        : missing
          ? `${count(missing)} of ${count(expected)} missing`
          : `${counted(members.length, "sensor")}, complete`,
    );
    node.classList.toggle("down", down);
    fillAxis(head.lastElementChild, from, hours, this.#app.summary.zone);
    const rows = pool(body, members.length, () => this.#makeRow());
    members.forEach((member, i) => fillRow(rows[i], member, from));
  }

  #makeRow() {
    const strip = svg(
      "svg",
      { class: "strip", viewBox: `0 0 ${HOURS} 10`, preserveAspectRatio: "none", role: "img" },
      [
        svg("path", { class: "full" }),
        svg("path", { class: "some" }),
        svg("path", { class: "none" }),
      ],
    );
    // Keyboard users have the list; a hundred more tab stops would be too many.
    const row = el("div", { class: "gap-row" }, [
      el("button", { type: "button", class: "link", tabindex: -1 }),
      strip,
    ]);
    row.firstElementChild.addEventListener("click", () => this.#app.select(row.dataset.id));
    tipOver(strip, (event) => this.#tell(row, event));
    return row;
  }

  #tell(row, event) {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const { member, from } = row.told;
    const i = Math.min(
      member.hours.length - 1,
      Math.max(0, Math.floor(((event.clientX - left) / width) * member.hours.length)),
    );
    const at = from + i * HOUR;
    const got = member.hours[i];
    const wanted = member.wanted[i];
    return [
      bothTimes(at, this.#app.summary.zone),
      [member.label || member.id, got === null ? "before the first reading" : `${got} of ${wanted}`],
    ];
  }
}

// Compares names, with the numbers in them by their value.
const { compare } = new Intl.Collator("en", { numeric: true });
const inOrder = (a, b) => compare(a.label || a.id, b.label || b.id);
const iso = (ms) => new Date(ms).toISOString();
const sum = (rows, key) => rows.reduce((total, row) => total + row[key], 0);

// Adds the expected and missing readings, and the number of empty hours at the end.
function judged(item, from, newest) {
  const every = 1000 * item.step_seconds;
  const wanted = item.hours.map((got, i) => {
    if (got === null) return 0;
    const end = Math.min(from + (i + 1) * HOUR, newest + 1);
    return Math.max(0, Math.ceil(end / every) - Math.ceil((from + i * HOUR) / every));
  });
  const missing = item.hours.reduce(
    (total, got, i) => total + Math.max(0, wanted[i] - (got ?? 0)),
    0,
  );
  const heard = item.hours.findLastIndex((got, i) => got > 0 || wanted[i] === 0);
  return {
    ...item,
    wanted,
    missing,
    expected: wanted.reduce((a, b) => a + b, 0),
    trailing: item.hours.length - 1 - heard,
  };
}

// Complete hours are high, incomplete ones low, empty ones a line: colour is not needed.
function fillRow(row, member, from) {
  const [name, strip] = row.children;
  row.dataset.id = member.id;
  row.told = { member, from };
  setText(name, member.label || member.id);
  const paths = { full: "", some: "", none: "" };
  member.hours.forEach((got, i) => {
    const wanted = member.wanted[i];
    if (got === null || wanted === 0) return;
    if (got >= wanted) paths.full += `M${i + 0.08} 1h.84v8h-.84Z`;
    else if (got > 0)
      paths.some += `M${i + 0.08} ${(9 - (8 * got) / wanted).toFixed(1)}h.84V9h-.84Z`;
    else paths.none += `M${i} 3.7h1v2.6h-1Z`;
  });
  for (const path of strip.children)
    setAttributes(path, { d: paths[path.getAttribute("class")] || null });
  setAttributes(strip, {
    "aria-label": member.missing
      ? `${member.missing} of ${member.expected} readings missing`
      : "no reading missing",
  });
}

function fillAxis(axis, from, hours, zone) {
  const marks = [];
  // A label needs the width of some hours, and must not reach beyond the strip.
  for (let i = 0; i <= hours - LABEL_HOURS; i += 1) {
    const { hour, minute } = localParts(from + i * HOUR, zone);
    if (minute === 0 && hour % 12 === 0)
      marks.push([
        i,
        hour === 0 ? dayTime(from + i * HOUR, zone).slice(0, 3) : clockTime(from + i * HOUR, zone),
      ]);
  }
  pool(axis, marks.length, () => svg("text", { y: "85%" })).forEach((text, i) => {
    setAttributes(text, { x: `${(100 * marks[i][0]) / hours}%` });
    setText(text, marks[i][1]);
  });
}
