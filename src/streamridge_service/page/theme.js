// Runs before the page is drawn, so that the other theme does not flash first.
(() => {
  const LOOKS = ["auto", "light", "dark"];
  const root = document.documentElement;
  const kept = () => {
    try {
      return localStorage.getItem("streamridge.look");
    } catch {
      return null; // Storage is disabled.
    }
  };

  function apply(look) {
    root.dataset.look = LOOKS.includes(look) ? look : "auto";
    root.dispatchEvent(new CustomEvent("look"));
  }

  function next() {
    const look = LOOKS[(LOOKS.indexOf(root.dataset.look) + 1) % LOOKS.length];
    try {
      localStorage.setItem("streamridge.look", look);
    } catch {
      // The choice is lost when the page is closed.
    }
    apply(look);
  }

  apply(kept());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    apply(root.dataset.look),
  );
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("look");
    const tell = () => (button.textContent = `Theme: ${root.dataset.look}`);
    button.addEventListener("click", next);
    root.addEventListener("look", tell);
    tell();
  });
})();
