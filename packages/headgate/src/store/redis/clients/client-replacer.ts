import { reconnectDelayMs, silentDelayMs } from '../reconnect.js'

/** How a client is made, connected and disposed of. */
export interface Lifecycle<Client> {
  make(): Client
  /** Rejects if it cannot be connected; resolves to false if only part of it works. */
  connect(client: Client): Promise<boolean>
  dispose(client: Client): unknown
  /** Called when a client has replaced another. */
  onReplaced?(): void
}

/** A connection was made, but nothing answered on it. */
export class NoGreeting extends Error {}

/** Keeps one working client, and replaces it when it becomes useless. */
export interface ClientReplacer<Client> {
  /** Returns the current client, or null before the first one. */
  current(): Client | null
  ready(): Promise<void>
  /** Replaces the client as soon as a new one is connected. At most about once a second. */
  replace(): void
  close(): void
}

const REPLACE_EVERY_MS = 1_000
/** A client taken out of use may still receive answers. */
const RETIRE_AFTER_MS = 1_000

/**
 * Keeps a client connected where the client itself would give up: if no node could be reached at the start, if its
 * primary has become a replica, or if all nodes it knows are gone.
 */
export function createClientReplacer<Client>(lifecycle: Lifecycle<Client>): ClientReplacer<Client> {
  // Made here and not in the background, so that invalid options are thrown to the caller.
  let spare: Client | null = lifecycle.make()
  const open = new Set<Client>([spare])
  const timers = new Map<NodeJS.Timeout, () => void>()
  let current: Client | null = null
  let closed = false
  let replacement: Promise<void> | null = null
  /** Whether a replacement was requested while the current client is still new. */
  let wanted = false
  let announceReady: () => void
  const whenReady = new Promise<void>(resolve => {
    announceReady = resolve
  })

  /** Ends early on close, because nothing may keep the process alive then. */
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

  /** A failing listener is no reason to discard the client. */
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
