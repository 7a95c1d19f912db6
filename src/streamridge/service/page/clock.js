// The service's clock. The browser's own may be wrong; only its durations are used.

let base = Date.now();
let since = performance.now();

export function setClock(iso) {
  const told = Date.parse(iso);
  if (Number.isNaN(told)) return;
  base = told;
  since = performance.now();
}

export const now = () => base + performance.now() - since;
