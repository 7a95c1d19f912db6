// The small form that asks for a token.
import { byId, setText, show } from "./dom.js";

// Returns what was typed; the form stays until something is.
export function askToken(problem) {
  const dialog = byId("token");
  const input = byId("token-text");
  const message = byId("token-problem");
  setText(message, problem);
  show(message, problem !== "");
  input.value = "";
  if (!dialog.open) dialog.showModal();
  return new Promise((done) => {
    const stop = new AbortController();
    dialog.addEventListener("cancel", (event) => event.preventDefault(), stop);
    byId("token-form").addEventListener(
      "submit",
      (event) => {
        event.preventDefault();
        stop.abort();
        dialog.close();
        done(input.value.trim());
      },
      stop,
    );
  });
}
