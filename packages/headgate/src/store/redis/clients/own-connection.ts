import { ignoreRejection } from '../../../errors/ignore-rejection.js'
import { systemClock } from '../../../time/clock.js'
import type { RedisConnection } from '../connection.js'
import { CONNECT_TIMEOUT_MS, reconnectDelayMs, silentDelayMs } from '../reconnect.js'
import { isReadOnly, YOUNG_MS } from '../script-runner.js'

/** A client of either library, reduced to what the store needs of it. */
export interface LibraryClient
  extends Required<Pick<RedisConnection, 'evalsha' | 'eval' | 'fcall' | 'loadFunctions' | 'info'>> {
  readonly cluster: boolean
  /** How long a connection may take to be made, and as long again to be answered on. Clients wait for that forever. */
  readonly connectWithinMs: number
  address(): string | undefined
  /** Returns the node that holds a key; '' if there is only one. */
  nodeOf(key: string): string
  /**
   * Resolves when commands can be sent: to true if every primary was reached, to false if only some were. Calls
   * `onMade` when a connection is made and waits for its first answer.
   */
  connect(onMade: () => void): Promise<boolean>
  listen(listener: ClientListener): void
  /** Drops all connections at once. */
  destroy(): unknown
}

export interface ClientListener {
  onError(error: unknown): void
  /** A connection that was lost is there again. */
  onReady(): void
  /** The client is of no use any more, whatever it does to recover. */
  onLost(): void
  /** One node of a cluster cannot be reached: the other nodes may know who has its slots now. */
  onNodeLost(): void
}

/** A client taken out of use may still receive answers. */
const RETIRE_AFTER_MS = 1_000
/** Takes about 40 seconds. By then a node that is gone has been replaced by its cluster, if it ever is. */
const MANY_ATTEMPTS = 30

/**
 * Keeps a working client of our own. A client is used until its connection is lost or found useless; then it is
 * discarded with all it holds, so that nothing is sent again or later, and a new one takes its place. That is the
 * only way in which a connection is restored, whichever library the client is of.
 */
export function ownConnection(make: () => LibraryClient): RedisConnection {
  const open = new Set<LibraryClient>()
  const timers = new Set<NodeJS.Timeout>()
  const listeners: (() => void)[] = []
  // Made here and not in the background, so that invalid options are thrown to the caller.
  const first = make()
  let spare: LibraryClient | null = first
  let current: LibraryClient | null = null
  /** How many clients in a row were no good, or have not proved to be yet. */
  let attempts = 0
  let isReplacing = false
  let closed = false
  let problem: string | undefined
  let announceReady = (): void => {}
  const whenReady = new Promise<void>(resolve => {
    announceReady = resolve
  })
  watch(first)

  function after(ms: number, work: () => void): () => void {
    const timer = setTimeout(() => {
      timers.delete(timer)
      work()
    }, ms)
    timers.add(timer)
    return () => {
      timers.delete(timer)
      clearTimeout(timer)
    }
  }

  function watch(client: LibraryClient): void {
    open.add(client)
    client.listen({
      onError(error) {
        problem = error instanceof Error ? error.message : String(error)
      },
      onReady: () => client === current && tellConnected(),
      onLost() {
        if (client === current) discard(client, reconnectDelayMs(1))
      },
      onNodeLost: () => client === current && replace(reconnectDelayMs(1)),
    })
  }

  /** Takes a client out of use at once: what waits in it must not be executed when its server goes on. */
  function discard(client: LibraryClient, delayMs: number): void {
    current = null
    // Not before the client has told its callers what happened.
    queueMicrotask(() => dispose(client))
    replace(delayMs)
  }

  function dispose(client: LibraryClient): void {
    if (open.delete(client)) ignoreRejection(client.destroy())
  }

  /** A failing listener is no reason to discard a client. */
  function tellConnected(): void {
    for (const listener of listeners) {
      try {
        listener()
      } catch {}
    }
  }

  function use(client: LibraryClient, isWhole: boolean): void {
    const old = current
    current = client
    announceReady()
    tellConnected()
    if (old !== null) after(RETIRE_AFTER_MS, () => dispose(old))
    if (isWhole) {
      after(YOUNG_MS, () => {
        if (current === client) attempts = 0
      })
    }
  }

  /** Puts a new client to use. Returns whether it is good for every node. */
  async function tryOne(): Promise<boolean> {
    let client: LibraryClient | null = spare
    spare = null
    try {
      if (client === null) {
        client = make()
        watch(client)
      }
      const isWhole = await inTime(client)
      if (!closed) use(client, isWhole)
      return isWhole
    } catch (error) {
      problem = (error as Error).message
      if (client !== null) dispose(client)
      return false
    }
  }

  function inTime(client: LibraryClient): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const ms = client.connectWithinMs
      const giveUp = (): void => reject(new Error(`no answer within ${ms} ms`))
      let cancel = (): void => {}
      const start = (): void => {
        cancel()
        cancel = after(ms, () => {
          // A busy process reads its sockets after its timers: the answer may be there.
          cancel = after(0, giveUp)
        })
      }
      start()
      client
        .connect(start)
        .then(resolve, reject)
        .finally(() => cancel())
    })
  }

  /** Tries until there is a client that is good for every node: one that is not may be reached elsewhere by now. */
  async function connectNew(delayMs: number): Promise<void> {
    // Clients that do not last are as much of a burden to a server as attempts that it rejects.
    let pauseMs = attempts === 0 ? delayMs : reconnectDelayMs(attempts)
    for (;;) {
      if (pauseMs > 0) await new Promise<void>(resolve => void after(pauseMs, resolve))
      if (closed) return
      attempts++
      const beganUs = systemClock.nowUs()
      if ((await tryOne()) || closed) return
      // Waiting for an answer has already spared the server. The nodes that answer are spared if one is away for long.
      const spareMs = reconnectDelayMs(attempts) * (current !== null && attempts > MANY_ATTEMPTS ? 10 : 1)
      pauseMs = Math.max(silentDelayMs(), spareMs - (systemClock.nowUs() - beganUs) / 1000)
    }
  }

  function replace(delayMs: number): void {
    if (closed || isReplacing) return
    isReplacing = true
    void connectNew(delayMs).finally(() => {
      isReplacing = false
    })
  }

  function send<Reply>(command: (client: LibraryClient) => Promise<Reply>): Promise<Reply> {
    if (current === null) {
      return Promise.reject(new Error(`not connected${problem === undefined ? '' : `: ${problem}`}`))
    }
    return command(current).catch(error => {
      // Our primary has become a replica, and stays one.
      if (isReadOnly(error)) replace(0)
      throw error
    })
  }

  replace(0)
  return {
    cluster: first.cluster,
    evalsha: (sha, keys, args) => send(client => client.evalsha(sha, keys, args)),
    eval: (text, keys, args) => send(client => client.eval(text, keys, args)),
    fcall: (name, keys, args) => send(client => client.fcall(name, keys, args)),
    loadFunctions: code => send(client => client.loadFunctions(code)),
    info: () => send(client => client.info()),
    ready: () => whenReady,
    address: () => (current ?? first).address(),
    problem: () => problem,
    nodeOf: key => current?.nodeOf(key) ?? '',
    replace() {
      // The other nodes of a cluster still answer.
      if (current === null || current.cluster) replace(0)
      else discard(current, 0)
    },
    onConnected: listener => void listeners.push(listener),
    async close() {
      closed = true
      current = null
      for (const timer of timers) clearTimeout(timer)
      for (const client of open) dispose(client)
    },
  }
}

/** Whether everything is done soon. One node that is not reached must not hold up the others. */
export async function areSoonDone(work: readonly Promise<unknown>[]): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>(resolve => {
    timer = setTimeout(() => resolve(false), 2 * CONNECT_TIMEOUT_MS)
  })
  const all = Promise.all(work).then(
    () => true,
    () => false,
  )
  return Promise.race([all, late]).finally(() => clearTimeout(timer))
}

/** Uses the caller's client as it is: the caller connects it, closes it, and owns its sockets. */
export function sharedConnection(client: LibraryClient, ready: () => Promise<void>): RedisConnection {
  const { connect, listen, destroy, connectWithinMs, ...used } = client
  return { ...used, ready }
}
