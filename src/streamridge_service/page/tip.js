// One tooltip for all charts.
import { byId, el, pool, setText } from "./dom.js";

const GAP = 14;

// Shows lines at a position of the window; each is a text, or a name and a value.
export function showTip(x, y, lines) {
  const tip = byId("tip");
  tip.hidden = false;
  const rows = pool(tip, lines.length, () => el("div", {}, [el("span"), el("b")]));
  rows.forEach((row, i) => {
    const [name, value] = Array.isArray(lines[i]) ? lines[i] : [lines[i], ""];
    setText(row.firstElementChild, name);
    setText(row.lastElementChild, value);
  });
  const { width, height } = tip.getBoundingClientRect();
  const left = x + GAP + width > innerWidth ? x - GAP - width : x + GAP;
  const top = Math.min(y + GAP, innerHeight - height - 4);
  const [right, down] = [left, top].map((each) => Math.max(4, Math.round(each)));
  tip.style.transform = `translate(${right}px, ${down}px)`;
}

export function hideTip() {
  byId("tip").hidden = true;
}

// Shows what `tell(event)` returns while the pointer is over a node.
export function tipOver(node, tell) {
  node.addEventListener("pointermove", (event) => {
    const lines = tell(event);
    if (lines) showTip(event.clientX, event.clientY, lines);
    else hideTip();
  });
  node.addEventListener("pointerleave", hideTip);
}
