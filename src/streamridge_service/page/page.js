// Builds the seven parts of the page, and keeps them up to date.
import { Api, Refusal } from "./api.js";
import { ChangesView } from "./changes.js";
import { setClock } from "./clock.js";
import { byId, el, setAttributes, setText, show, throttled } from "./dom.js";
import { GapsView } from "./gaps.js";
import { List, MANY } from "./list.js";
import { SensorView } from "./sensor.js";
import { chooseState, showStates, startStates } from "./states.js";
import { Stream } from "./stream.js";
import { askToken } from "./token.js";
import { heard, showLost, showSummary, startStatus } from "./status.js";
import { TuningView } from "./tuning.js";

// Milliseconds for which an error is shown.
const NOTICE = 30000;
// An error above this multiple of its usual size stands out. Another sensor replaces the worst one
// only if it is this factor worse; otherwise two similar sensors would alternate.
const STANDS_OUT = 1.2;
const WORSE = 1.1;

const app = {
  api: new Api(askToken),
  summary: null,
  state: "",
  selected: null,
  byHand: false,
  select: (id, item) => select(id, true, item),
  listed,
  guard: guarded,
  query: () => list.query,
};

startStatus();
startStates(filter);
const list = new List(app);
const sensor = new SensorView(app);
const tuning = new TuningView(app);
const gaps = new GapsView(app);
const changes = new ChangesView(app);
let map = null;
let rows = [];
let watched = "";
let broken = false;
let farewell = "";

const resync = throttled(1000, () => guarded(askAll()));

async function askAll() {
  takeSummary(await app.api.get("/v1/summary"), false);
  await Promise.all([list.load(), gaps.load(), changes.load()].map(guarded));
  if (app.selected)
    await Promise.all(
      [sensor.show(app.selected, list.find(app.selected)), tuning.show(app.selected)].map(guarded),
    );
}

const stream = new Stream(app.api, {
  opened() {
    if (broken) resync();
    broken = false;
    farewell = "";
  },
  event(kind, body) {
    heard();
    handlers[kind]?.(body);
  },
  lost(milliseconds, why) {
    broken = true;
    showLost(milliseconds, why || farewell);
  },
});

const handlers = {
  summary: takeSummary,
  sensor(item) {
    list.update(item);
    sensor.update(item);
    if (item.id === app.selected && !app.byHand) tellWhy(item);
  },
  event(change) {
    changes.add(change);
    if (change.kind === "retuned" && change.sensor === app.selected)
      guarded(tuning.show(change.sensor));
  },
  resync: () => resync(),
  shutdown: () => (farewell = "The service has stopped."),
};

// After a failed request the page stays as it is and shows an error. The event stream tells whether
// the service can be reached at all.
async function guarded(promise) {
  try {
    await promise;
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Refusal)) throw error;
    if (error.status === 0) return;
    setText(byId("notice"), `Some data could not be loaded: ${error.message}`);
    show(byId("notice"), true);
    setTimeout(() => show(byId("notice"), false), NOTICE);
  }
}

// With `renew`, parts load newer readings.
function takeSummary(told, renew = true) {
  const before = app.summary;
  setClock(told.now);
  app.summary = told;
  showSummary(told);
  showStates(told);
  showEmpty(told);
  tuning.tick();
  if (!renew || !before) return;
  // Sorting many sensors takes the service long.
  if (told.total <= MANY && !isEqual(told.sensors, before.sensors)) list.renew();
  if (told.newest === before.newest && told.total === before.total) return;
  list.refresh();
  changes.draw();
  gaps.refresh();
  sensor.refresh();
  if (map && !byId("map").hidden) refreshMap();
}

const isEqual = (one, other) => Object.keys(one).every((key) => one[key] === other[key]);

const refreshMap = throttled(30000, () => guarded(map.load()));

// Shows the sensor with the worst forecasts until the user selects one.
function listed(items, worst) {
  rows = items.map(({ id }) => id);
  show(byId("view"), map !== null || items.some(({ position }) => position));
  if (worst && !app.byHand) {
    const shown = items.find(({ id }) => id === app.selected);
    const followed = isWorse(worst, shown) ? worst : shown;
    select(followed.id, false);
    tellWhy(followed);
  }
  watchSoon();
}

function tellWhy({ error_ratio: ratio }) {
  const stands = ratio >= STANDS_OUT;
  setText(byId("sensor-why"), stands ? "worst forecasts now" : "no sensor stands out now");
}

function isWorse(one, other) {
  if (!other) return true;
  return (one.error_ratio ?? 0) > WORSE * (other.error_ratio ?? 0);
}

function select(id, byHand, item = undefined) {
  app.byHand = byHand;
  const same = app.selected === id;
  app.selected = id;
  if (byHand) history.replaceState(null, "", `#${encodeURIComponent(id)}`);
  show(byId("sensor-why"), !byHand);
  show(byId("follow"), byHand);
  list.draw();
  map?.draw();
  if (same) return;
  guarded(
    Promise.all([sensor.show(id, item ?? list.find(id)), tuning.show(id)]).catch(unlessUnknown),
  );
  watchSoon();
}

// If the sensor of a link does not exist, the worst one is shown.
function unlessUnknown(error) {
  if (error.status === 404) follow();
  throw error;
}

function follow() {
  app.byHand = false;
  app.selected = null;
  history.replaceState(null, "", location.pathname);
  byId("search").value = list.query = "";
  filter("");
}

const watchSoon = (() => {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(watch, 150);
  };
})();

// Subscribes to the sensors on the screen.
function watch() {
  const seen = [...new Set([app.selected, ...rows])].filter(Boolean).sort();
  if (seen.join(",") === watched && watched) return;
  watched = seen.join(",");
  stream.watch(seen);
}

function filter(state) {
  app.state = state;
  chooseState(state);
  guarded(list.restart());
  guarded(gaps.restart());
  if (map) guarded(map.load());
}

async function showView(asMap) {
  setAttributes(byId("as-list"), { "aria-pressed": String(!asMap) });
  setAttributes(byId("as-map"), { "aria-pressed": String(asMap) });
  show(byId("rows"), !asMap);
  show(byId("map"), asMap);
  byId("sensors").classList.toggle("as-map", asMap);
  if (!asMap) return;
  if (!map) {
    const { SensorMap } = await import("./map.js");
    map = new SensorMap(app);
  }
  await guarded(map.load());
}

// Before the first reading the page explains how to send it.
function showEmpty({ total, step_seconds: step }) {
  const empty = total === 0;
  document.body.classList.toggle("is-empty", empty);
  const old = byId("first");
  if (!empty) old?.remove();
  if (!empty || old) return;
  const at = new Date(Math.floor(Date.now() / 1000 / step) * step * 1000)
    .toISOString()
    .slice(0, 19);
  const row = JSON.stringify({ sensor: "A2-31.2", time: `${at}Z`, value: 312 });
  const command = [
    `curl -X POST ${location.origin}/v1/readings`,
    "  -H 'Content-Type: application/json'",
    `  -d '[${row}]'`,
  ].join(" \\\n");
  byId("sensors").before(
    el("section", { id: "first", class: "card first" }, [
      el("h2", {}, "No sensor yet"),
      el("p", {}, "Send the first reading to see it on this page:"),
      el("pre", {}, [el("code", {}, command)]),
      el(
        "p",
        { class: "soft" },
        "A forecast follows at once; the model takes over after about three days of readings.",
      ),
    ]),
  );
}

async function start() {
  const wanted = decodeURIComponent(location.hash.slice(1));
  if (wanted) app.byHand = true;
  for (;;) {
    try {
      takeSummary(await app.api.get("/v1/summary"));
      break;
    } catch (error) {
      showLost(2000, error.status ? error.message : "");
      await new Promise((done) => setTimeout(done, 2000));
    }
  }
  await Promise.all([list.load(), gaps.load(), changes.load()].map(guarded));
  if (wanted) select(wanted, true);
  watchSoon();
}

byId("as-list").addEventListener("click", () => showView(false));
byId("as-map").addEventListener("click", () => showView(true));
byId("follow").addEventListener("click", follow);
addEventListener("hashchange", () => {
  const id = decodeURIComponent(location.hash.slice(1));
  if (id && id !== app.selected) select(id, true);
});
start();
