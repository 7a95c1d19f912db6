// One shape per state, so that colour is never the only difference.
import { setAttributes, svg } from "./dom.js";

const RING = "M8 2.7a5.3 5.3 0 1 0 0 10.6a5.3 5.3 0 1 0 0-10.6Z";
const CLOCK = `${RING}M8 5v3.2l2.2 1.4`;
const DOWN = "M2.6 3.8h10.8L8 13Z";

// Shape, whether it is filled, tone, and meaning.
export const STATES = {
  good: [RING, true, "good", "Readings arrive, and the model makes the forecasts."],
  stale: [CLOCK, false, "warn", "No reading for an hour."],
  silent: [`${RING}M4.3 11.7L11.7 4.3`, false, "bad", "No reading for a day."],
  constant: ["M2.8 6h10.4M2.8 10h10.4", false, "warn", "The same value many times in a row."],
  zero: [
    "M8 2.8c-2.2 0-3.5 2.2-3.5 5.2s1.3 5.2 3.5 5.2s3.5-2.2 3.5-5.2S10.2 2.8 8 2.8Z",
    false,
    "warn",
    "Only zeros.",
  ],
  implausible: [
    "M8 2.8L14 13.2H2ZM8 6.6v3M8 11.2v.3",
    false,
    "warn",
    "Values far outside the usual range; the model does not learn from them.",
  ],
  degraded: [DOWN, true, "bad", "The last refit failed, or stored data cannot be read."],
  rebuilt: [
    "M12.9 8.4A4.9 4.9 0 1 1 11.4 4.4M11.7 1.9v2.9H8.8",
    false,
    "info",
    "The stored state was damaged and was rebuilt from the readings.",
  ],
  new: ["M8 2.6v10.8M2.6 8h10.8", false, "info", "Too few readings for a model yet."],
};

// States that need attention, the most urgent first.
export const TROUBLES = [
  "degraded",
  "stale",
  "silent",
  "implausible",
  "zero",
  "constant",
  "rebuilt",
];

export const SERVICE = {
  live: [RING, true, "good"],
  starting: [
    "M3.6 2.6h8.8M3.6 13.4h8.8M4.8 2.6c0 4 6.4 6 6.4 10.8M11.2 2.6c0 4-6.4 6-6.4 10.8",
    false,
    "info",
  ],
  degraded: [DOWN, true, "bad"],
  stale: [CLOCK, false, "warn"],
  stopping: ["M3.6 3.6h8.8v8.8H3.6Z", true, "warn"],
  lost: ["M3.6 3.6l8.8 8.8M12.4 3.6l-8.8 8.8", false, "bad"],
};

export const EVENTS = {
  ...STATES,
  retuned: ["M2.6 5h10.8M2.6 11h10.8M6 2.8v4.4M10.4 8.8v4.4", false, "info"],
  refused: [`${RING}M5.2 8h5.6`, false, "bad"],
  clock_jump: [CLOCK, false, "bad"],
  outside: ["M2.4 10.6h11.2M2.4 13.4h11.2M8 8.6V2.6M5.4 5.2 8 2.6l2.6 2.6", false, "bad"],
  inside: ["M2.4 10.6h11.2M2.4 13.4h11.2M8 2.6v6M5.4 6 8 8.6 10.6 6", false, "info"],
  acknowledged: [`${RING}M5.2 8.2l2 2 3.6-4`, false, "soft"],
  alert_failed: [`${RING}M8 4.4v4.4M8 11.2v.4`, false, "bad"],
  data_loss: [DOWN, true, "bad"],
  backup: [RING, true, "good"],
  backup_failed: [DOWN, true, "bad"],
  pruned: [RING, false, "soft"],
  prune_failed: [DOWN, true, "bad"],
  archived: ["M3.4 6v7h9.2V6M2.4 3h11.2v3H2.4ZM6.4 8.6h3.2", false, "soft"],
};

const UNKNOWN = [RING, false, "soft"];

// Returns a glyph that `setGlyph` fills in.
export function glyph() {
  return svg("svg", { class: "glyph", viewBox: "0 0 16 16", "aria-hidden": "true" }, [svg("path")]);
}

export function setGlyph(node, shapes, name) {
  const [shape, solid, tone] = shapes[name] ?? UNKNOWN;
  setAttributes(node, { class: `glyph tone-${tone}` });
  setAttributes(node.firstElementChild, { d: shape, class: solid ? "solid" : "hollow" });
}
