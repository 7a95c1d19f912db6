// Shapes of the chart of one sensor that are not lines.
import { color, rem } from "./dom.js";
import { isNumber } from "./format.js";

// Calls `paint(brush, x, y, area)` inside the area of a plot, in its pixels.
function inside(plot, paint) {
  const { ctx: brush, bbox: area } = plot;
  brush.save();
  brush.beginPath();
  brush.rect(area.left, 0, area.width, area.top + area.height);
  brush.clip();
  const [x, y] = ["x", "y"].map((scale) => (value) => plot.valToPos(value, scale, true));
  paint(brush, x, y, area);
  brush.restore();
}

// Hatches times without readings, from half a step before to half a step after.
export function paintGaps(plot, { points, step }) {
  inside(plot, (brush, x, _, { top, height }) => {
    brush.fillStyle = hatch(brush);
    for (let i = 0; i < points.length; i += 1) {
      if (isNumber(points[i].actual)) continue;
      const start = x(points[i].at - step / 2);
      while (i + 1 < points.length && !isNumber(points[i + 1].actual)) i += 1;
      brush.fillRect(start, top, x(points[i].at + step / 2) - start, height);
    }
  });
}

function hatch(brush) {
  const size = Math.round(0.5 * rem() * devicePixelRatio);
  const tile = new OffscreenCanvas(size, size);
  const pen = tile.getContext("2d");
  pen.strokeStyle = color("calm");
  pen.lineWidth = devicePixelRatio;
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift, size);
    pen.lineTo(shift + size, 0);
  }
  pen.stroke();
  return brush.createPattern(tile, "repeat");
}

// Marks the time after the newest reading.
export function paintFuture(plot, newest, em) {
  inside(plot, (brush, x, _, { left, top, width, height }) => {
    const [start, end] = [x(newest), left + width];
    if (start >= end) return;
    const pixels = devicePixelRatio;
    brush.fillStyle = brush.strokeStyle = color("accent");
    brush.globalAlpha = 0.06;
    brush.fillRect(start, top, end - start, height);
    brush.globalAlpha = 1;
    brush.setLineDash([3 * pixels, 3 * pixels]);
    brush.lineWidth = pixels;
    brush.strokeRect(start, top - 6 * pixels, 0, height + 6 * pixels);
    brush.font = `${0.78 * em * pixels}px system-ui`;
    brush.textAlign = "left";
    brush.textBaseline = "alphabetic";
    const room = end - brush.measureText("forecast").width;
    brush.fillText("forecast", Math.min(start + 4 * pixels, room), top - 8 * pixels);
  });
}

// Crosses at implausible values, which may be far outside the range.
export function paintOdd(plot, points) {
  inside(plot, (brush, x, y, { top, height }) => {
    const size = 4 * devicePixelRatio;
    brush.strokeStyle = color("bad");
    brush.lineWidth = 2 * devicePixelRatio;
    brush.beginPath();
    for (const { at, actual, status } of points) {
      if (status !== "implausible") continue;
      const level = Math.min(top + height - size, Math.max(top + size, y(actual)));
      for (const down of [-size, size]) {
        brush.moveTo(x(at) - size, level - down);
        brush.lineTo(x(at) + size, level + down);
      }
    }
    brush.stroke();
  });
}
