// The shown part of a time range, which several charts may share.
import { show } from "./dom.js";

export class TimeWindow extends EventTarget {
  #range = [0, 1];
  #zoom = null;
  #least = 0;

  get min() {
    return (this.#zoom ?? this.#range)[0];
  }

  get max() {
    return (this.#zoom ?? this.#range)[1];
  }

  get isZoomed() {
    return this.#zoom !== null;
  }

  // Sets the whole range, and the shortest time that can be shown. A zoom stays; if it includes the
  // newest time, it follows it.
  cover(from, to, least) {
    const follows = this.#zoom && this.#zoom[1] >= this.#range[1];
    const shift = follows ? to - this.#range[1] : 0;
    this.#range = [Math.min(from, to - least), to];
    this.#least = least;
    if (this.#zoom) this.zoom(this.#zoom[0] + shift, this.#zoom[1] + shift);
    else this.#tell();
  }

  // Shows a part; it is moved into the whole range.
  zoom(min, max) {
    const [from, to] = this.#range;
    const width = Math.max(max - min, this.#least);
    const middle = (min + max) / 2;
    const start = Math.min(Math.max(middle - width / 2, from), to - width);
    this.#zoom = width < to - from ? [start, start + width] : null;
    this.#tell();
  }

  // Shows less for a factor below 1, and more for one above; `at` stays where it is.
  zoomBy(factor, at) {
    this.zoom(at + (this.min - at) * factor, at + (this.max - at) * factor);
  }

  // Moves by a share of the shown time.
  move(share) {
    const by = share * (this.max - this.min);
    this.zoom(this.min + by, this.max + by);
  }

  reset() {
    this.#zoom = null;
    this.#tell();
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}

// Shows a button while a part is shown; it shows the whole range again.
export function offerReset(button, shown) {
  button.addEventListener("click", () => shown.reset());
  shown.addEventListener("change", () => show(button, shown.isZoomed));
}
