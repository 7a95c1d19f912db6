// What an operator may do with the shown sensor. Each form is one action of the service.
import { byId, setAttributes, setText, show } from "./dom.js";

const RETUNED = "Refitted and retuned. The forecast after the next reading uses it.";
const ASK = "This action needs a token with the scope “admin”.";

export class Actions {
  #app;
  #id = null;
  #changed;

  // `app` has `api`; `changed()` is called after an action.
  constructor(app, changed) {
    this.#app = app;
    this.#changed = changed;
    this.#on("act-retune", () => this.#act("retune"), RETUNED);
    this.#on("act-freeze", () => this.#freeze("freeze"), "Tuning is frozen.");
    this.#on("act-unfreeze", () => this.#freeze("unfreeze"), "Tuning goes on.");
    this.#on("act-acknowledge", () => this.#act("acknowledge"), "Acknowledged.");
    this.#on("act-exclude", (form) => this.#exclude(form), "These readings are not learned from.");
    this.#on("act-void", (form) => this.#void(form), "The reading counts as missing now.");
    this.#on("act-label", (form) => this.#label(form), "Saved.");
  }

  // Shows the actions of another sensor.
  show(item) {
    const other = item.id !== this.#id;
    this.#id = item.id;
    show(byId("act-acknowledge"), item.state !== "good" && !item.acknowledged);
    if (!other) return;
    this.#say("");
    for (const form of byId("act").querySelectorAll("form")) form.reset();
    byId("act-label").elements.label.value = item.label ?? "";
  }

  #on(name, act, done) {
    byId(name).addEventListener("submit", (event) => {
      event.preventDefault();
      this.#run(event.target, () => act(event.target), done);
    });
  }

  // A button is disabled while its action runs.
  async #run(form, act, done) {
    const button = form.querySelector("button");
    setAttributes(button, { disabled: true });
    this.#say("Working.");
    try {
      await act();
      this.#say(done);
      this.#changed();
    } catch (error) {
      this.#say(error.message);
    } finally {
      setAttributes(button, { disabled: null });
    }
  }

  #say(words) {
    setText(byId("act-result"), words);
  }

  #path = (part) => `/v1/sensors/${encodeURIComponent(this.#id)}${part}`;
  #act = (name, body) => this.#app.api.send("POST", this.#path(`/${name}`), body, ASK);

  async #freeze(name) {
    const { learned } = await this.#app.api.get(this.#path("/tuning"));
    await this.#act(name, { names: learned });
  }

  #exclude({ elements: { start, end } }) {
    return this.#act("exclude", { start: utc(start.value), end: utc(end.value) });
  }

  // A reading is replaced by a missing one; both stay in the log.
  #void({ elements: { time } }) {
    const row = { sensor: this.#id, time: utc(time.value), value: null };
    return this.#app.api.send("POST", "/v1/readings?on_conflict=replace", [row], ASK);
  }

  async #label({ elements: { label } }) {
    const { declared } = await this.#app.api.get(this.#path(""));
    const words = label.value.trim();
    const body = { ...declared, label: words || null };
    await this.#app.api.send("PUT", this.#path(""), body, ASK);
  }
}

// Returns the time of a form, which is in UTC.
const utc = (text) => `${text}${text.length === 16 ? ":00" : ""}Z`;
