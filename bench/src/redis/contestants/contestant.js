/**
 * A limiter on a shared Redis, called as its own users call it.
 *
 * @typedef {object} Contestant
 * @property {(key: string) => Promise<unknown>} ask One request of `key`. A denial may be an answer or a rejection.
 * @property {(answer: any) => boolean} admits Whether the result of `ask` lets the request pass.
 * @property {(error: Error) => boolean} [denies] Whether an `Error` is a denial; any other is a failure.
 * @property {() => number} [strayed] Decisions that did not come from Redis although they should have.
 */

/**
 * @typedef {object} Setup
 * @property {string} url
 * @property {import('../clients.js').ClientKind} client
 * @property {import('../workloads.js').Rules} rules
 * @property {string} prefix The prefix of its keys, different in every workload.
 * @property {boolean} leased
 */

/**
 * @typedef {object} Entry
 * @property {string} name The name without the client.
 * @property {'headgate' | 'peer' | 'raw'} role
 * @property {import('../clients.js').ClientKind} client
 * @property {'counter' | 'bucket' | 'log' | 'tier' | 'fixed' | 'none'} algorithm
 * @property {boolean} localBlock Whether it remembers denials in the process.
 * @property {readonly import('../workloads.js').WorkloadId[]} workloads
 * @property {(setup: Setup) => Promise<Contestant>} create
 */
export {}
