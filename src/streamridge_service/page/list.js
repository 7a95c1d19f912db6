// Part 3: pages of sensors, worst first, in the order of the service.
import { byId, pool, rem, setAttributes, setText, show, throttled } from "./dom.js";
import { count } from "./format.js";
import { TROUBLES } from "./glyphs.js";
import { fillRow, makeRow } from "./rows.js";

export const WORST_FIRST = "-error_ratio";
// Heights in rem: of a row, and of everything else on the screen.
const ROW = 2.7;
const TAKEN = 26;
// The order of the list stays for this many milliseconds after the last movement in it.
const REST = 15000;
// The most sensors with a problem at the top of the list.
const MOST_TROUBLED = 5;
// Milliseconds for which they stay there if there are many sensors.
const LOOK_AGAIN = 60000;
export const MANY = 1000;
const FIRST = { cursor: null, before: 0 };

export class List {
  #app;
  #items = [];
  #troubled = [];
  // For each page up to this one: its cursor, and the number of rows before it.
  #pages = [FIRST];
  #next = null;
  #total = 0;
  #touched = -Infinity;
  #asked = 0;
  #looked = -Infinity;
  #size = pageSize();
  query = "";

  // `app` has `api`, `guard(promise)`, `summary`, `state` (the filter), `selected`, `select(id)`,
  // and `listed(items, worst)`, which gets the items and, on the first page, the worst of them.
  constructor(app) {
    this.#app = app;
    const body = byId("row-body");
    body.addEventListener("click", (event) => this.#clicked(event));
    body.addEventListener("keydown", (event) => this.#pressed(event));
    byId("rows").addEventListener("pointermove", () => (this.#touched = performance.now()));
    byId("next").addEventListener("click", () => this.#turn(1));
    byId("previous").addEventListener("click", () => this.#turn(-1));
    this.#listenToSearch();
    const reload = () => {
      if (performance.now() - this.#touched > REST) app.guard(this.load());
    };
    this.refresh = throttled(10000, reload);
    this.renew = throttled(2000, reload);
  }

  #listenToSearch() {
    const input = byId("search");
    let timer;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.search(input.value.trim()), 200);
    });
    input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") this.#focus(0);
      else if (event.key === "Escape") input.value = "";
      else return;
      event.preventDefault();
      if (event.key === "Escape") this.search("");
    });
    addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.target.closest("input, dialog")) return;
      event.preventDefault();
      input.select();
      input.focus();
    });
  }

  search(query) {
    if (query === this.query) return;
    this.query = query;
    this.#app.guard(this.restart());
  }

  // Goes back to the first page.
  restart() {
    this.#pages = [FIRST];
    this.#size = pageSize();
    return this.load();
  }

  #turn(by) {
    const { before } = this.#pages.at(-1);
    if (by > 0 && this.#next)
      this.#pages.push({ cursor: this.#next, before: before + this.#items.length });
    else if (by < 0 && this.#pages.length > 1) this.#pages.pop();
    return this.#app.guard(this.load());
  }

  async load() {
    const asked = (this.#asked += 1);
    const [{ cursor }, first] = [this.#pages.at(-1), this.#pages.length === 1];
    const room = first ? this.#room : 0;
    const above = first ? this.#askTroubled(room) : this.#troubled;
    const [troubled, rest] = await Promise.all([
      above,
      this.#askRest(cursor, this.#size - room, above),
    ]);
    if (asked !== this.#asked) return; // A later request is running.
    this.#troubled = troubled;
    this.#items = first ? [...troubled, ...rest.items] : rest.items;
    this.#next = rest.cursor;
    this.#total = rest.total;
    this.draw();
    const worst = rest.items[0] ?? troubled[0];
    this.#app.listed(this.#items, first && this.#whole ? worst : undefined);
  }

  // Requests `many` sensors, without those at the top, whose request is running.
  async #askRest(cursor, many, above) {
    const { api, state } = this.#app;
    const page = { state, sort: WORST_FIRST, q: this.query };
    const rest = { items: [], cursor, total: 0 };
    do {
      const limit = many - rest.items.length;
      const told = await api.get("/v1/sensors", { ...page, limit, cursor: rest.cursor });
      const known = new Set((await above).map(({ id }) => id));
      rest.items.push(...told.items.filter(({ id }) => !known.has(id)));
      [rest.cursor, rest.total] = [told.cursor, told.total];
    } while (rest.cursor && rest.items.length < many);
    return rest;
  }

  // Whether there is neither a search nor a filter.
  get #whole() {
    return this.query === "" && this.#app.state === "";
  }

  // Returns the states with problems; none during a search or with a filter.
  get #troubles() {
    const { sensors } = this.#app.summary;
    return this.#whole ? TROUBLES.filter((state) => sensors[state] > 0) : [];
  }

  get #room() {
    const { sensors } = this.#app.summary;
    const many = this.#troubles.reduce((sum, state) => sum + sensors[state], 0);
    return Math.min(many, MOST_TROUBLED, Math.floor(this.#size / 2));
  }

  // Requests `room` sensors with problems, some of each state. This is slow for many sensors, so the
  // result is kept for a while.
  async #askTroubled(room) {
    const { api, summary } = this.#app;
    const known = this.#troubled.length === room && performance.now() - this.#looked < LOOK_AGAIN;
    if (known && summary.total > MANY) return this.#troubled;
    const ask = (state) => api.get("/v1/sensors", { state, sort: WORST_FIRST, limit: room });
    const answers = await Promise.all(this.#troubles.map(ask));
    this.#looked = performance.now();
    return inTurn(answers.map(({ items }) => items)).slice(0, room);
  }

  find = (id) => this.#items.find((item) => item.id === id);

  // Updates one row in place.
  update(item) {
    const i = this.#items.findIndex((each) => each.id === item.id);
    if (i < 0) return;
    this.#items[i] = item;
    fillRow(byId("row-body").children[i], item, item.id === this.#app.selected);
  }

  draw() {
    const rows = pool(byId("row-body"), this.#items.length, makeRow);
    const { selected } = this.#app;
    this.#items.forEach((item, i) => fillRow(rows[i], item, item.id === selected));
    const inside = rows.find((row) => row.getAttribute("aria-selected") === "true") ?? rows[0];
    rows.forEach((row) => setAttributes(row, { tabindex: row === inside ? 0 : -1 }));
    this.#drawPager();
  }

  #drawPager() {
    const { before } = this.#pages.at(-1);
    const many = this.#items.length;
    setText(
      byId("range"),
      many ? `${count(before + 1)}–${count(before + many)} of ${count(this.#total)}` : "",
    );
    byId("next").disabled = !this.#next;
    byId("previous").disabled = this.#pages.length === 1;
    show(byId("pager"), many > 0 && many < this.#total);
    // The last page is as high as the others.
    byId("row-body").style.minHeight = many < this.#total ? `${ROW * this.#size}rem` : "";
    show(byId("list-empty"), many === 0 && (this.query !== "" || this.#app.state !== ""));
    const { state } = this.#app;
    const none = this.query ? `is called “${this.query}”` : `is ${state} now`;
    setText(byId("list-empty"), `No sensor ${none}.`);
  }

  #clicked(event) {
    const row = event.target.closest("[role=row]");
    if (row) this.#app.select(row.dataset.id);
  }

  #pressed(event) {
    const rows = Array.from(byId("row-body").children);
    const here = rows.indexOf(event.target.closest("[role=row]"));
    const goals = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: rows.length - 1 };
    this.#touched = performance.now();
    if (event.key in goals) this.#focus(goals[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.#app.select(rows[here].dataset.id);
    else if (event.key === "PageDown") this.#turn(1).then(() => this.#focus(0));
    else if (event.key === "PageUp") this.#turn(-1).then(() => this.#focus(0));
    else return;
    event.preventDefault();
  }

  // Moves to a row and shows its sensor; the search is above the first row.
  #focus(i) {
    const rows = Array.from(byId("row-body").children);
    if (i < 0) byId("search").focus();
    const row = rows[i];
    if (!row) return;
    this.#app.select(row.dataset.id);
    row.focus();
  }
}

// Returns the first item of each list, then the second of each, and so on.
function inTurn(lists) {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  const ranks = Array.from({ length: longest }, (_, i) => i);
  return ranks.flatMap((i) => lists.map((list) => list[i])).filter(Boolean);
}

// Returns the number of rows that fit on the screen.
function pageSize() {
  const room = Math.floor((innerHeight / rem() - TAKEN) / ROW);
  return Math.min(40, Math.max(8, room));
}
