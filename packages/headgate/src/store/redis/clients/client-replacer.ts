import { reconnectDelayMs, silentDelayMs } from '../reconnect.js'

/** How a client is made, connected and thrown away. */
export interface Lifecycle<Client> {
  make(): Client
  /** Rejects when it cannot be connected; resolves to false when it works, but not all of it. */
  connect(client: Client): Promise<boolean>
  dispose(client: Client): unknown
  /** Told when a client has taken the place of another. */
  onReplaced?(): void
}

/** A connection was made, and then nobody answered. */
export class NoGreeting extends Error {}

/** One working client at a time, replaced by a new one when it is of no use any more. */
export interface ClientReplacer<Client> {
  /** The client to use now, or null while there has not been any. */
  current(): Client | null
  ready(): Promise<void>
  /** Puts a new client in the place of this one as soon as one is connected. At most about one a second. */
  replace(): void
  close(): void
}

const REPLACE_EVERY_MS = 1_000
/** A client taken out of use may still be owed answers. */
const RETIRE_AFTER_MS = 1_000

/**
 * Keeps a client connected where the client itself gives up: when no node could be reached at the start, when it sits
 * on a primary that has become a replica, or when it knows only nodes that are gone.
 */
export function createClientReplacer<Client>(lifecycle: Lifecycle<Client>): ClientReplacer<Client> {
  // Made here and not in the background: options that do not fit are the caller's mistake, to be thrown at once.
  let spare: Client | null = lifecycle.make()
  const open = new Set<Client>([spare])
  const timers = new Map<NodeJS.Timeout, () => void>()
  let current: Client | null = null
  let closed = false
  let replacement: Promise<void> | null = null
  /** Asked for while a client that is still new is in use. */
  let wanted = false
  let announceReady: () => void
  const whenReady = new Promise<void>(resolve => {
    announceReady = resolve
  })

  /** Ends early when everything is closed: nothing must keep the process alive then. */
  function pause(ms: number): Promise<void> {
    if (closed) return Promise.resolve()
    return new Promise(resolve => {
      const timer = setTimeout(() => {
        timers.delete(timer)
        resolve()
      }, ms)
      timers.set(timer, resolve)
    })
  }

  function dispose(client: Client): void {
    if (open.delete(client)) lifecycle.dispose(client)
  }

  function use(client: Client): void {
    const old = current
    current = client
    announceReady()
    wanted = false
    if (old !== null) void pause(RETIRE_AFTER_MS).then(() => dispose(old))
  }

  /** A listener's fault is no reason to throw the client away. */
  function tellReplaced(): void {
    try {
      lifecycle.onReplaced?.()
    } catch {}
  }

  function make(): Client {
    const client = spare ?? lifecycle.make()
    spare = null
    open.add(client)
    return client
  }

  async function connectNew(): Promise<void> {
    for (let attempt = 1; !closed; attempt++) {
      let client: Client | null = null
      let wasSilent = false
      try {
        client = make()
        const whole = await lifecycle.connect(client)
        if (closed) return
        use(client)
        tellReplaced()
        if (whole) return
      } catch (error) {
        wasSilent = error instanceof NoGreeting
        if (client !== null) dispose(client)
      }
      await pause(wasSilent ? silentDelayMs() : reconnectDelayMs(attempt))
    }
  }

  function replace(): void {
    wanted = true
    if (closed || replacement !== null) return
    replacement = connectNew()
      .then(() => pause(REPLACE_EVERY_MS))
      .finally(() => {
        replacement = null
        if (wanted) replace()
      })
  }

  replace()
  return {
    current: () => current,
    ready: () => whenReady,
    replace,
    close() {
      closed = true
      for (const client of open) dispose(client)
      for (const [timer, end] of timers) {
        clearTimeout(timer)
        end()
      }
      timers.clear()
    },
  }
}
