// Scales from values to positions.

export const linear =
  ([a, b], [c, d]) =>
  (value) =>
    c + ((value - a) / (b - a || 1)) * (d - c);

export function logarithmic([a, b], range) {
  const inner = linear([Math.log(a), Math.log(b)], range);
  return (value) => inner(Math.log(value));
}
