// Part 3 as a map without tiles: each sensor at its position, with the shape of its state.
import { byId, color, rem } from "./dom.js";
import { count, isNumber, sentence } from "./format.js";
import { STATES } from "./glyphs.js";
import { WORST_FIRST } from "./list.js";
import { hideTip, tipOver } from "./tip.js";

// The most sensors of the map, the worst first; more would make the response large.
const MOST = 5000;
const GRAB = 18;
const EARTH = 111.32;

export class SensorMap {
  #app;
  #canvas = document.createElement("canvas");
  #items = [];
  #total = 0;
  #places = [];

  constructor(app) {
    this.#app = app;
    const host = byId("map");
    this.#canvas.setAttribute("role", "img");
    host.append(this.#canvas);
    new ResizeObserver(() => this.draw()).observe(host);
    document.documentElement.addEventListener("look", () => this.draw());
    tipOver(this.#canvas, (event) => this.#tell(event));
    this.#canvas.addEventListener("click", (event) => {
      const found = this.#near(event);
      if (found) app.select(found.item.id, found.item);
      hideTip();
    });
  }

  async load() {
    const { api, state, query } = this.#app;
    const told = await api.get("/v1/sensors", {
      state,
      q: query(),
      sort: WORST_FIRST,
      limit: MOST,
    });
    this.#items = told.items.filter(({ position }) => position?.every(isNumber));
    this.#total = told.total;
    this.draw();
  }

  draw() {
    const host = byId("map");
    const { clientWidth: width, clientHeight: height } = host;
    if (!width || !height) return;
    const scale = devicePixelRatio || 1;
    const canvas = this.#canvas;
    if (canvas.width !== width * scale || canvas.height !== height * scale) {
      canvas.width = width * scale;
      canvas.height = height * scale;
    }
    canvas.setAttribute("aria-label", `Map of ${count(this.#items.length)} sensors`);
    const brush = canvas.getContext("2d");
    brush.setTransform(scale, 0, 0, scale, 0, 0);
    brush.clearRect(0, 0, width, height);
    if (!this.#items.length) return;
    const kilometre = this.#project(width, height);
    const roads = this.#roads();
    this.#drawRoads(brush, roads);
    this.#drawSensors(brush);
    this.#drawNames(brush, roads, width);
    this.#drawScale(brush, kilometre, width, height);
  }

  // Computes each sensor's place; a degree of longitude is shorter away from the equator.
  #project(width, height) {
    const lats = this.#items.map(({ position }) => position[0]);
    const lons = this.#items.map(({ position }) => position[1]);
    const [south, north] = [Math.min(...lats), Math.max(...lats)];
    const [west, east] = [Math.min(...lons), Math.max(...lons)];
    const shrink = Math.cos(((north + south) / 2) * (Math.PI / 180)) || 1;
    const margin = 1.8 * rem();
    const wide = Math.max((east - west) * shrink, 1e-3);
    const high = Math.max(north - south, 1e-3);
    const zoom = Math.min((width - 2 * margin) / wide, (height - 2.6 * margin) / high);
    const left = (width - (east - west) * shrink * zoom) / 2;
    const top = (height - 0.6 * margin - (north - south) * zoom) / 2;
    this.#places = this.#items.map((item) => ({
      item,
      x: left + (item.position[1] - west) * shrink * zoom,
      y: top + (north - item.position[0]) * zoom,
    }));
    return zoom / EARTH;
  }

  // Returns groups by name, each with its places along its main direction.
  #roads() {
    const groups = Map.groupBy(
      this.#places.filter(({ item }) => item.group),
      ({ item }) => item.group,
    );
    return [...groups].map(([name, places]) => [name.slice(0, 20), sortedAlong(places)]);
  }

  // A faint line through the sensors of a group shows the road.
  #drawRoads(brush, roads) {
    brush.lineWidth = 5;
    brush.lineCap = brush.lineJoin = "round";
    brush.strokeStyle = color("line");
    for (const [, along] of roads) {
      brush.beginPath();
      along.forEach(({ x, y }) => brush.lineTo(x, y));
      brush.stroke();
    }
  }

  // Names are on top, each with an outline, and stay within the map.
  #drawNames(brush, roads, width) {
    brush.font = `600 ${0.75 * rem()}px system-ui, sans-serif`;
    brush.lineWidth = 4;
    brush.strokeStyle = color("card");
    brush.fillStyle = color("soft");
    brush.textAlign = "center";
    for (const [name, along] of roads) {
      const half = brush.measureText(name).width / 2;
      const { x, y } = roomFor(along, this.#places);
      const inside = Math.min(width - half, Math.max(half, x));
      brush.strokeText(name, inside, y);
      brush.fillText(name, inside, y);
    }
    brush.textAlign = "start";
  }

  #drawSensors(brush) {
    const size = this.#places.length > 400 ? 0.55 : 1;
    brush.lineWidth = 1.8;
    // Good sensors first, so that sensors with problems are on top.
    const rank = ({ item }) => (item.state === "good" ? 0 : 1);
    for (const { item, x, y } of this.#places.toSorted((a, b) => rank(a) - rank(b))) {
      const [shape, solid, tone] = STATES[item.state] ?? STATES.new;
      brush.save();
      brush.translate(x - 8 * size, y - 8 * size);
      brush.scale(size, size);
      const path = new Path2D(shape);
      brush.fillStyle = solid ? color(tone) : color("card");
      brush.strokeStyle = color(solid ? "card" : tone);
      brush.fill(path);
      brush.stroke(path);
      if (item.id === this.#app.selected) {
        brush.strokeStyle = color("ink");
        brush.beginPath();
        brush.arc(8, 8, 11, 0, 7);
        brush.stroke();
      }
      brush.restore();
    }
  }

  #drawScale(brush, kilometre, width, height) {
    const round =
      [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500].find(
        (km) => km * kilometre > width / 8,
      ) ?? 1000;
    const small = 0.75 * rem();
    const y = height - small;
    brush.strokeStyle = brush.fillStyle = color("soft");
    brush.lineWidth = 1;
    brush.strokeRect(small, y, round * kilometre, 0);
    brush.font = `${small}px system-ui, sans-serif`;
    const rest =
      this.#total > this.#items.length
        ? ` · ${count(this.#items.length)} of ${count(this.#total)} sensors`
        : "";
    brush.fillText(`${round} km · north is up${rest}`, small, y - 5);
  }

  #near(event) {
    let best = null;
    let least = GRAB * GRAB;
    for (const place of this.#places) {
      const distance = (place.x - event.offsetX) ** 2 + (place.y - event.offsetY) ** 2;
      if (distance < least) [best, least] = [place, distance];
    }
    return best;
  }

  #tell(event) {
    const found = this.#near(event);
    this.#canvas.classList.toggle("pointing", Boolean(found));
    if (!found) return null;
    const { label, id, state, reason } = found.item;
    return [[label || id, state], ...(reason ? [sentence(reason)] : [])];
  }
}

// Returns the place of a name: beyond or beside the first sensor, where there is most space.
function roomFor([first, second = first], places) {
  const far = 1.7 * rem();
  const [across, up] = [first.x - second.x, first.y - second.y];
  const length = Math.hypot(across, up);
  const [dx, dy] = length ? [across / length, up / length] : [0, -1];
  const rooms = [[dx, dy], [dy, -dx], [-dy, dx]].map(([right, down]) => {
    // Names are wide and need more space to the sides.
    const [x, y] = [first.x + 2 * far * right, first.y + far * down + 0.25 * rem()];
    const nearest = Math.min(...places.map((each) => Math.hypot((each.x - x) / 2, each.y - y)));
    return { x, y, nearest };
  });
  return rooms.reduce((best, each) => (each.nearest > best.nearest ? each : best));
}

function sortedAlong(places) {
  const mean = (key) => places.reduce((sum, place) => sum + place[key], 0) / places.length;
  const [mx, my] = [mean("x"), mean("y")];
  const spread = (f) => places.reduce((sum, { x, y }) => sum + f(x - mx, y - my), 0);
  const angle =
    Math.atan2(
      2 * spread((x, y) => x * y),
      spread((x, y) => x * x - y * y),
    ) / 2;
  const along = ({ x, y }) => x * Math.cos(angle) + y * Math.sin(angle);
  return places.toSorted((a, b) => along(a) - along(b));
}
