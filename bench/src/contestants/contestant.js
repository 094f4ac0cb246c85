/**
 * Something that limits, asked as its own users ask it.
 * The loop that measures calls `ask` directly and awaits what comes back, so no wrapper's cost is charged to anybody.
 *
 * @typedef {object} Contestant
 * @property {(key: string) => unknown} ask One request of `key`. A denial may be an answer or a rejection.
 * @property {(answer: unknown) => boolean} admits Whether the answer lets the request pass.
 * @property {(keys: readonly string[]) => unknown} forget Makes the keys as if nobody had asked for them.
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
 * @property {'promise' | 'sync'} shape How it is asked; a `sync` one is not awaited and is not compared with the rest.
 * @property {(rule: Rule) => Promise<Contestant>} create
 */
export {}
