// Requests to the service, with a token if the service needs one.

const KEY = "streamridge.token";

// An error response with its status; status 0 means that the service could not be reached.
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The service answered ${status}.`);
    this.status = status;
  }
}

export class Api {
  #token = stored();
  #ask;
  #asking = null;

  // `ask` shows the form for a token, and returns a promise of the typed text.
  constructor(ask) {
    this.#ask = ask;
  }

  async get(path, params = {}, signal = undefined) {
    const response = await this.open(path, params, { signal });
    return reached(response.json());
  }

  // Changes something; `ask` says which token is needed, if another one is.
  async send(method, path, body = undefined, ask = "") {
    const headers = body === undefined ? {} : { "Content-Type": "application/json" };
    const content = body === undefined ? undefined : JSON.stringify(body);
    const response = await this.open(path, {}, { method, headers, body: content, ask });
    return response.status === 204 ? null : reached(response.json());
  }

  // Returns a response whose body is not read yet.
  async open(path, params, { signal, headers = {}, method = "GET", body, ask = "" } = {}) {
    for (;;) {
      const sent = this.#token;
      const all = sent ? { ...headers, Authorization: `Bearer ${sent}` } : headers;
      const response = await reached(
        fetch(address(path, params), { signal, method, body, headers: all, cache: "no-store" }),
      );
      if (response.ok) return response;
      const problem = await response.json().catch(() => ({}));
      if (response.status !== 401 && response.status !== 403)
        throw new Refusal(response.status, problem);
      await this.#renew(sent, ask || reason(sent, response.status));
    }
  }

  // Many requests may be refused at once; one form serves them all.
  async #renew(refused, why) {
    if (this.#token !== refused) return;
    this.#asking ??= this.#ask(why).finally(() => (this.#asking = null));
    this.#token = await this.#asking;
    keep(this.#token);
  }
}

// Returns the result of a promise; a network error means that the service cannot be reached.
export async function reached(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, { detail: "The service cannot be reached." });
  }
}

function reason(refused, status) {
  if (status === 403) return "This token may not read. Use one with the scope “read”.";
  return refused ? "The service refused this token." : "";
}

function address(path, params) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  return query.size ? `${path}?${query}` : path;
}

function stored() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(token) {
  try {
    sessionStorage.setItem(KEY, token);
  } catch {
    // The token is lost when the page is closed.
  }
}
