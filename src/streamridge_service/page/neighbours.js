// The sensors whose latest errors correct the forecasts of the shown sensor.
import { byId, el, pool, setAttributes, setText, show, svg } from "./dom.js";
import { number, percent } from "./format.js";

// `told` has the items, the strongest first, and the ratio of errors; it is null without a group.
export function drawNeighbours(told) {
  show(byId("neighbours"), Boolean(told));
  const items = told?.items ?? [];
  if (told) setText(byId("neighbours-words"), words(items, told.error_ratio));
  const rows = pool(byId("neighbour-list"), items.length, () =>
    el("li", {}, [el("bdi"), svg("svg", { "aria-hidden": true }, [svg("rect")]), el("span")]),
  );
  const most = Math.max(...items.map(({ strength }) => strength), Number.MIN_VALUE);
  rows.forEach((row, i) => {
    const [name, bar, size] = row.children;
    const { sensor, strength } = items[i];
    setText(name, sensor);
    setAttributes(bar.firstElementChild, { width: `${(100 * strength) / most}%`, height: "100%" });
    setText(size, number(strength, 2));
  });
}

function words(items, ratio) {
  if (!items.length) {
    return "Listens to no other sensor of its group: none has foretold its errors so far.";
  }
  const change = 1 - ratio;
  const gain = change < 0.005 ? "" : ` Errors one step ahead are ${percent(change)} smaller by it.`;
  return `Listens to sensors of its group, by how far each moves a forecast (in usual errors).${gain}`;
}
