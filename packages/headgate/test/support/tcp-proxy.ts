import { createServer, connect as dial, type Server, type Socket } from 'node:net'

/** Applies faults to bytes in transit. A fault affects open and new connections until the next call. */
export interface TcpProxy {
  readonly host: '127.0.0.1'
  readonly port: number
  /** Connections open now. */
  readonly connections: number
  /** Replies discarded since the start. */
  readonly droppedReplies: number
  /** Everything passes, at once. */
  forward(): void
  /**
   * Requests arrive and are executed, replies are lost. A connection that lost one is reset after
   * `thenResetAfterMs`; without it, it stays open and silent.
   */
  dropReplies(options?: { readonly thenResetAfterMs?: number }): void
  /** Nothing passes, nothing is closed, new connections are accepted: what a lost route looks like. */
  blackhole(): void
  /** Delays both directions by this much, in order. */
  delay(options: { readonly ms: number; readonly jitterMs?: number }): void
  /** Sends pieces of this many bytes, each in a packet of its own. */
  slice(options?: { readonly bytes?: number }): void
  /** Ends all connections with a reset, as a crash of the other side does. The fault stays. */
  resetAll(): void
  close(): Promise<void>
}

type Fault =
  | { readonly kind: 'none' | 'blackhole' }
  | { readonly kind: 'drop-replies'; readonly thenResetAfterMs: number | undefined }
  | { readonly kind: 'delay'; readonly ms: number; readonly jitterMs: number }
  | { readonly kind: 'slice'; readonly bytes: number }

/**
 * Listens on a free port (or the given one) and passes connections on to `target`, faithfully unless told
 * otherwise.
 */
export async function startTcpProxy(target: {
  readonly port: number
  readonly host?: string
  readonly listenOn?: number
}): Promise<TcpProxy> {
  const links = new Set<Link>()
  let fault: Fault = { kind: 'none' }
  let droppedReplies = 0
  const server = createServer(client => {
    const upstream = dial({ port: target.port, host: target.host ?? '127.0.0.1', noDelay: true })
    const link = new Link(client, upstream, () => fault)
    links.add(link)
    link.onReplyDropped = () => {
      droppedReplies++
    }
    link.onClosed = () => links.delete(link)
  })
  const port = await listen(server, target.listenOn ?? 0)

  return {
    host: '127.0.0.1',
    port,
    get connections() {
      return links.size
    },
    get droppedReplies() {
      return droppedReplies
    },
    forward: () => {
      fault = { kind: 'none' }
    },
    dropReplies: ({ thenResetAfterMs } = {}) => {
      fault = { kind: 'drop-replies', thenResetAfterMs }
    },
    blackhole: () => {
      fault = { kind: 'blackhole' }
    },
    delay: ({ ms, jitterMs = 0 }) => {
      fault = { kind: 'delay', ms, jitterMs }
    },
    slice: ({ bytes = 1 } = {}) => {
      fault = { kind: 'slice', bytes }
    },
    resetAll: () => {
      for (const link of links) link.reset()
    },
    close: () => {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      for (const link of links) link.reset()
      return closed
    },
  }
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

/** One connection through the proxy. */
class Link {
  onClosed = (): void => {}
  onReplyDropped = (): void => {}
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #fault: () => Fault
  #resetting = false

  constructor(client: Socket, upstream: Socket, fault: () => Fault) {
    this.#client = client
    this.#upstream = upstream
    this.#fault = fault
    client.setNoDelay(true)
    const toServer = new Lane(upstream, fault)
    const toClient = new Lane(client, fault)
    client.on('data', chunk => toServer.carry(chunk))
    upstream.on('data', chunk => {
      const now = this.#fault()
      if (now.kind === 'drop-replies') this.#drop(now.thenResetAfterMs)
      else toClient.carry(chunk)
    })
    for (const [side, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      side.on('error', () => {})
      side.on('close', () => {
        // A black hole does not pass on the end of a connection either.
        if (this.#fault().kind !== 'blackhole') other.destroy()
        if (client.destroyed && upstream.destroyed) this.onClosed()
      })
    }
  }

  #drop(thenResetAfterMs: number | undefined): void {
    this.onReplyDropped()
    if (thenResetAfterMs === undefined || this.#resetting) return
    this.#resetting = true
    setTimeout(() => this.reset(), thenResetAfterMs)
  }

  reset(): void {
    if (!this.#client.destroyed) this.#client.resetAndDestroy()
    this.#upstream.destroy()
  }
}

/** One direction of a connection. Bytes never overtake each other, whatever fault they met. */
class Lane {
  readonly #to: Socket
  readonly #fault: () => Fault
  #last: Promise<void> = Promise.resolve()
  #idle = true

  constructor(to: Socket, fault: () => Fault) {
    this.#to = to
    this.#fault = fault
  }

  carry(chunk: Buffer): void {
    const fault = this.#fault()
    if (fault.kind === 'blackhole') return
    if (this.#idle && (fault.kind === 'none' || fault.kind === 'drop-replies')) {
      this.#write(chunk)
      return
    }
    this.#idle = false
    const arrives = fault.kind === 'delay' ? sleep(fault.ms + Math.random() * fault.jitterMs) : undefined
    const carried = this.#last
      .then(() => arrives)
      .then(() => (fault.kind === 'slice' ? this.#writeSliced(chunk, fault.bytes) : this.#write(chunk)))
      .then(() => {
        if (this.#last === carried) this.#idle = true
      })
    this.#last = carried
  }

  #write(chunk: Buffer): void {
    if (!this.#to.destroyed) this.#to.write(chunk)
  }

  async #writeSliced(chunk: Buffer, bytes: number): Promise<void> {
    for (let start = 0; start < chunk.length; start += bytes) {
      this.#write(chunk.subarray(start, start + bytes))
      await new Promise(resolve => setImmediate(resolve))
    }
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
