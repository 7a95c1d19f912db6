// Server-sent events through fetch, since EventSource cannot send a token.
import { Refusal, reached } from "./api.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 20000;
// The service sends something every 15 seconds; a connection silent for longer is dead.
const SILENCE = 45000;
const LONGEST_LINE = 1 << 20;

export class Stream {
  #api;
  #heard;
  #running = null;
  #lastId = null;
  #wake = () => {};

  // `heard` has the functions `opened`, `event(kind, body)` and `lost(milliseconds, why)`.
  constructor(api, heard) {
    this.#api = api;
    this.#heard = heard;
    addEventListener("online", () => this.#wake());
    document.addEventListener("visibilitychange", () => this.#wake());
  }

  // Subscribes to other sensors; no event in between is missed.
  watch(sensors) {
    this.#running?.abort();
    this.#running = new AbortController();
    this.#run(sensors, this.#running.signal);
  }

  async #run(sensors, stopped) {
    let pause = FIRST_PAUSE;
    while (!stopped.aborted) {
      let why = "";
      try {
        for await (const { kind, body } of this.#events(sensors, stopped)) {
          pause = FIRST_PAUSE;
          this.#heard.event(kind, body);
        }
      } catch (error) {
        if (error instanceof Refusal) why = error.status ? error.message : "";
        else if (error.name !== "AbortError") reportError(error);
      }
      if (stopped.aborted) return;
      this.#heard.lost(pause, why);
      await this.#rest(pause);
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }

  async *#events(sensors, stopped) {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE);
    try {
      const signal = AbortSignal.any([stopped, silence.signal]);
      const headers = { Accept: "text/event-stream" };
      if (this.#lastId !== null) headers["Last-Event-ID"] = this.#lastId;
      const response = await this.#api.open(
        "/v1/stream",
        { sensors: sensors.join(",") },
        { signal, headers },
      );
      this.#heard.opened();
      for await (const line of lines(response.body)) {
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENCE);
        const event = this.#take(line);
        if (event && !stopped.aborted) yield event;
      }
    } finally {
      clearTimeout(timer);
    }
  }

  #draft = { kind: "message", data: [], id: null };

  // Returns an event after its final empty line.
  #take(line) {
    const draft = this.#draft;
    if (line !== "") {
      const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
      if (field === "event") draft.kind = value;
      else if (field === "data") draft.data.push(value);
      else if (field === "id") draft.id = value;
      return null;
    }
    this.#draft = { kind: "message", data: [], id: null };
    if (draft.id !== null) this.#lastId = draft.id;
    if (draft.data.length === 0) return null;
    return { kind: draft.kind, body: JSON.parse(draft.data.join("\n")) };
  }

  #rest(milliseconds) {
    return new Promise((done) => {
      const timer = setTimeout(done, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  }
}

async function* lines(body) {
  let rest = "";
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reached(reader.read());
      if (done) return;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      if (rest.length > LONGEST_LINE)
        throw new Refusal(0, { detail: "A line of the event stream is too long." });
      for (const part of parts) yield part.endsWith("\r") ? part.slice(0, -1) : part;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
