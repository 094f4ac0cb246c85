/**
 * Something that limits by a shared Redis, asked as its own users ask it.
 *
 * @typedef {object} Contestant
 * @property {(key: string) => Promise<unknown>} ask One request of `key`. A denial may be an answer or a rejection.
 * @property {(answer: any) => boolean} admits Of what `ask` resolved to, whether that lets the request pass.
 * @property {(error: Error) => boolean} [denies] Whether an `Error` is how it says no; any other is a failure.
 * @property {() => number} [strayed] Decisions that did not come from Redis although they should have.
 */

/**
 * @typedef {object} Setup
 * @property {string} url
 * @property {import('../clients.js').ClientKind} client
 * @property {import('../workloads.js').Rules} rules
 * @property {string} prefix Of its keys, its own in every workload.
 * @property {boolean} leased
 */

/**
 * @typedef {object} Entry
 * @property {string} name Without the client.
 * @property {'headgate' | 'peer' | 'raw'} role
 * @property {import('../clients.js').ClientKind} client
 * @property {'counter' | 'bucket' | 'log' | 'tier' | 'fixed' | 'none'} algorithm
 * @property {boolean} localBlock Whether it remembers denials in the process.
 * @property {readonly import('../workloads.js').WorkloadId[]} workloads
 * @property {(setup: Setup) => Promise<Contestant>} create
 */
export {}
