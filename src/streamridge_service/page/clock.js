// The service's clock. The browser's clock may be wrong; only its durations are used.

// Number of changes of the clock over which its pace is measured: one change may be a whole step.
const CHANGES = 4;
// A clock this many times faster than the browser's follows readings that are replayed quickly.
const HURRIED = 3;

let base = Date.now();
let since = performance.now();
let changes = [];

export function setClock(iso) {
  const told = Date.parse(iso);
  if (Number.isNaN(told)) return;
  base = told;
  since = performance.now();
  if (told !== changes.at(-1)?.told)
    changes = [...changes, { told, at: since }].slice(-CHANGES);
}

export const now = () => base + performance.now() - since;

// Returns the service's seconds per second of the browser, or null if both are about equal.
export function lapse() {
  const [first, last] = [changes[0], changes.at(-1)];
  if (changes.length < CHANGES) return null;
  const pace = (last.told - first.told) / (last.at - first.at);
  return pace > HURRIED ? pace : null;
}
