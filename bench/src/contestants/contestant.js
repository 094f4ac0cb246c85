/**
 * A limiter, called as its own users call it.
 * The measuring loop calls `ask` directly and awaits the result, so nobody pays for a wrapper.
 *
 * @typedef {object} Contestant
 * @property {(key: string) => unknown} ask One request of `key`. A denial may be an answer or a rejection.
 * @property {(answer: unknown) => boolean} admits Whether the answer lets the request pass.
 * @property {(keys: readonly string[]) => unknown} forget Removes all state of the keys.
 */

/**
 * @typedef {object} Rule
 * @property {number} limit Requests a key may make in the window; windows are long enough never to end in a run.
 * @property {number} windowSeconds
 */

/**
 * @typedef {object} Entry
 * @property {string} name
 * @property {'headgate' | 'peer' | 'bare' | 'harness'} role
 * @property {'promise' | 'sync'} shape A `sync` contestant is not awaited, and not compared with the others.
 * @property {(rule: Rule) => Promise<Contestant>} create
 */
export {}
