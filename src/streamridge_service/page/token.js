// The form for a token.
import { byId, setText, show } from "./dom.js";

// Returns the typed token; the form stays open until there is one.
export function askToken(problem) {
  const dialog = byId("token");
  const input = byId("token-text");
  const message = byId("token-problem");
  setText(byId("token-url"), location.origin);
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
