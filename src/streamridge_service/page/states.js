// Part 2: the number of sensors in each state; a click filters by a state.
import { byId, el, pool, setAttributes, setText, svg } from "./dom.js";
import { count } from "./format.js";
import { STATES, glyph, setGlyph } from "./glyphs.js";

const ALL = "";
const names = [ALL, ...Object.keys(STATES)];
let chosen = ALL;

export function startStates(onFilter) {
  pool(byId("chips"), names.length, (i) => chip(names[i], onFilter));
  pool(byId("shares"), names.length - 1, (i) =>
    svg("rect", { class: `tone-${STATES[names[i + 1]][2]}`, y: 0, height: "100%" }),
  );
}

function chip(state, onFilter) {
  const mark = glyph();
  if (state) setGlyph(mark, STATES, state);
  const children = [el("b", {}, "–"), el("span", {}, state || "all")];
  const node = el(
    "button",
    { type: "button", "data-state": state, title: state ? STATES[state][3] : "Every sensor" },
    state ? [mark, ...children] : children,
  );
  node.addEventListener("click", () => onFilter(chosen === state ? ALL : state));
  return node;
}

export function chooseState(state) {
  chosen = state;
  for (const node of byId("chips").children)
    setAttributes(node, { "aria-pressed": String(node.dataset.state === state) });
}

export function showStates({ sensors, total }) {
  for (const node of byId("chips").children) {
    const many = node.dataset.state ? (sensors[node.dataset.state] ?? 0) : total;
    setText(node.querySelector("b"), count(many));
    node.classList.toggle("none", many === 0);
  }
  let start = 0;
  Array.from(byId("shares").children).forEach((rect, i) => {
    const share = total ? (100 * (sensors[names[i + 1]] ?? 0)) / total : 0;
    setAttributes(rect, { x: `${start}%`, width: `${share}%` });
    start += share;
  });
  chooseState(chosen);
}
