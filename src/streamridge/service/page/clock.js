// The service's clock. The browser's own may be wrong; only its durations are used.

// Changes of the clock that its pace is measured by: one alone may be a whole step.
const CHANGES = 4;
// A clock this much faster than the browser's is that of readings which are sent in a hurry.
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

// Seconds of the service in one of the browser's, or null if both are about the same.
export function lapse() {
  const [first, last] = [changes[0], changes.at(-1)];
  if (changes.length < CHANGES) return null;
  const pace = (last.told - first.told) / (last.at - first.at);
  return pace > HURRIED ? pace : null;
}
