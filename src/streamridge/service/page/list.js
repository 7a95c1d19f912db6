// Part 3: sensors worst first, a page at a time, as the service sorts them.
import { byId, pool, rem, setAttributes, setText, show, throttled } from "./dom.js";
import { count } from "./format.js";
import { fillRow, makeRow } from "./rows.js";

export const WORST_FIRST = "-error_ratio";
// Heights in rem: of a row, and of what else a screen shows beside the rows.
const ROW = 2.7;
const TAKEN = 24;
// While somebody reads or moves in the list, its order stays.
const REST = 15000;

export class List {
  #app;
  #items = [];
  #pages = [null];
  #next = null;
  #total = 0;
  #touched = -Infinity;
  #asked = 0;
  #size = pageSize();
  query = "";

  // `app` has `api`, `guard(promise)`, `state` (the filter), `selected`, `select(id)`, and
  // `listed(items, first)`, which is told whether they are the first page.
  constructor(app) {
    this.#app = app;
    const body = byId("row-body");
    body.addEventListener("click", (event) => this.#clicked(event));
    body.addEventListener("keydown", (event) => this.#pressed(event));
    byId("rows").addEventListener("pointermove", () => (this.#touched = performance.now()));
    byId("next").addEventListener("click", () => this.#turn(1));
    byId("previous").addEventListener("click", () => this.#turn(-1));
    this.#listenToSearch();
    this.refresh = throttled(10000, () => {
      if (performance.now() - this.#touched > REST) app.guard(this.load());
    });
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
    this.#pages = [null];
    this.#size = pageSize();
    return this.load();
  }

  #turn(by) {
    if (by > 0 && this.#next) this.#pages.push(this.#next);
    else if (by < 0 && this.#pages.length > 1) this.#pages.pop();
    return this.#app.guard(this.load());
  }

  async load() {
    const asked = (this.#asked += 1);
    const { api, state } = this.#app;
    const page = {
      state,
      sort: WORST_FIRST,
      q: this.query,
      limit: this.#size,
      cursor: this.#pages.at(-1),
    };
    const told = await api.get("/v1/sensors", page);
    if (asked !== this.#asked) return; // A later question is under way.
    this.#items = told.items;
    this.#next = told.cursor;
    this.#total = told.total;
    this.draw();
    this.#app.listed(told.items, this.#pages.length === 1);
  }

  find = (id) => this.#items.find((item) => item.id === id);

  // Renews one row, where it stands.
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
    const first = (this.#pages.length - 1) * this.#size;
    const many = this.#items.length;
    setText(
      byId("range"),
      many ? `${count(first + 1)}–${count(first + many)} of ${count(this.#total)}` : "",
    );
    byId("next").disabled = !this.#next;
    byId("previous").disabled = this.#pages.length === 1;
    show(byId("pager"), many > 0 && many < this.#total);
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

  // Moves to a row and shows its sensor; above the first row is the search.
  #focus(i) {
    const rows = Array.from(byId("row-body").children);
    if (i < 0) byId("search").focus();
    const row = rows[i];
    if (!row) return;
    this.#app.select(row.dataset.id);
    row.focus();
  }
}

// As many rows as a screen has room for, so that a wall shows more than a phone.
function pageSize() {
  const room = Math.floor((innerHeight / rem() - TAKEN) / ROW);
  return Math.min(40, Math.max(8, room));
}
