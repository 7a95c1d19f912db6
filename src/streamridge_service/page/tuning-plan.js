// The panels that show the tuning of a sensor.
import { isNumber } from "./format.js";
import { heatPanel } from "./heat-panel.js";
import { linePanel } from "./line-panel.js";
import { wordsOf } from "./panels.js";
import { stackPanel } from "./stack-panel.js";

// The most panels on the page; a model has about ten.
const MOST_PANELS = 40;
const EXPERTS = {
  model: "the model",
  start: "the initial model",
  week: "a week ago",
  day: "a day ago",
  last: "the last reading",
};

// Returns the key, the builder and the data of each panel.
export function planned(told, items, span) {
  const shared = { items, span, zone: told.zone };
  const alone = told.names.filter((name) => !told.weights.includes(name));
  const [single, grouped] = parted(alone);
  return [
    ...weights(told, shared),
    ...experts(shared),
    ...single.map((name) => line(told, shared, name)),
    ...[...grouped].map(([group, names]) => heat(told, shared, group, names)),
  ].slice(0, MOST_PANELS);
}

function weights({ weights: names, labels = {} }, shared) {
  if (!names.length) return [];
  const items = shared.items.map(({ time, values }) => ({ time, shares: values }));
  const kernel = (name) => labels[name] ?? wordsOf(name.split(".").slice(1).join(".") || name);
  const words = { title: "kernel weights", note: "the weight of each kernel" };
  return [["weights", stackPanel, { ...shared, ...words, items, names, labels: kernel }]];
}

function experts(shared) {
  const items = shared.items
    .filter((item) => Object.values(item.experts ?? {}).some(isNumber))
    .map((item) => ({ time: item.time, shares: item.experts }));
  if (!items.length) return [];
  const names = Object.keys(items.at(-1).shares);
  const words = { title: "experts", note: "their weights in the forecast" };
  const labels = (name) => EXPERTS[name] ?? name;
  return [["experts", stackPanel, { ...shared, ...words, items, names, labels }]];
}

function line({ limits, at_bound: bounds, frozen }, shared, name) {
  const state = { limits: limits[name], bound: bounds[name], frozen: frozen.includes(name) };
  return [name, linePanel, { ...shared, ...state, name }];
}

function heat({ limits, at_bound: bounds, labels: told = {} }, shared, group, names) {
  const title = wordsOf(group);
  const labels = (name) => told[name] ?? `${title} ${name.slice(group.length)}`;
  return [group, heatPanel, { ...shared, title, names, labels, limits, bounds }];
}

// Groups names with one value per feature, such as scales[0] and scales[1].
function parted(names) {
  const groups = Map.groupBy(names, (name) => /^(.*)\[\d+\]$/.exec(name)?.[1] ?? "");
  const single = groups.get("") ?? [];
  groups.delete("");
  return [single, groups];
}
