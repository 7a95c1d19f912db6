// Zoom and movement of a chart by mouse, wheel and fingers. A plain drag belongs to uPlot, and the
// vertical wheel to the page.

const WHEEL = 0.002;

// `point(x)` shows the values at a position of the area.
export function listenToGestures(area, shown, point) {
  const held = new Map();
  const timeAt = (x) => shown.min + (x / area.clientWidth) * (shown.max - shown.min);
  const grab = ({ offsetX: x }) => ({ x, time: timeAt(x) });

  area.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && !event.shiftKey) return;
    held.set(event.pointerId, grab(event));
    for (const each of held.values()) each.time = timeAt(each.x);
    area.setPointerCapture(event.pointerId);
  });
  area.addEventListener("pointermove", (event) => {
    const grabbed = held.get(event.pointerId);
    if (!grabbed) return;
    grabbed.x = event.offsetX;
    if (event.pointerType !== "mouse" && held.size === 1) point(grabbed.x);
    else follow([...held.values()], area.clientWidth, shown);
  });
  for (const end of ["pointerup", "pointercancel"])
    area.addEventListener(end, (event) => held.delete(event.pointerId));
  area.addEventListener(
    "wheel",
    (event) => {
      const { deltaX, deltaY, ctrlKey, shiftKey, offsetX } = event;
      const across = deltaX || (shiftKey ? deltaY : 0);
      if (!ctrlKey && !shiftKey && Math.abs(across) <= Math.abs(deltaY)) return;
      event.preventDefault();
      if (ctrlKey) shown.zoomBy(Math.exp(WHEEL * deltaY), timeAt(offsetX));
      else shown.move(across / area.clientWidth);
    },
    { passive: false },
  );
}

// Keeps the grabbed times under one or two pointers.
function follow([one, other], size, shown) {
  const width = other
    ? (size * (other.time - one.time)) / (other.x - one.x)
    : shown.max - shown.min;
  if (!(width > 0)) return;
  const start = one.time - (one.x / size) * width;
  shown.zoom(start, start + width);
}
