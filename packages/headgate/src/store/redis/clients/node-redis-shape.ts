/**
 * The part of node-redis that is used, written out. Its own types cover every command and module: checking a union
 * of them took the compiler a minute and two gigabytes.
 */

interface ScriptCall {
  readonly keys: string[]
  readonly arguments: string[]
}

interface Emitter {
  on(event: string, listener: (...args: never[]) => void): this
  once(event: string, listener: (...args: never[]) => void): this
}

interface Common extends Emitter {
  readonly isOpen: boolean
  evalSha(sha: string, call: ScriptCall): Promise<unknown>
  eval(text: string, call: ScriptCall): Promise<unknown>
  fCall(name: string, call: ScriptCall): Promise<unknown>
  duplicate(overrides?: object): unknown
  withCommandOptions(options: object): unknown
  connect(): Promise<unknown>
  destroy(): unknown
}

/** A client of one server. */
export interface NodeRedisClient extends Common {
  readonly isReady: boolean
  readonly options?: { readonly socket?: { readonly host?: string; readonly port?: number } }
  functionLoad(code: string, options: { readonly REPLACE: boolean }): Promise<unknown>
  info(): Promise<unknown>
}

export interface ClusterNode {
  readonly address: string
  client?: NodeRedisClient | undefined
  connectPromise?: Promise<NodeRedisClient> | undefined
}

export interface NodeRedisCluster extends Common {
  readonly masters: readonly ClusterNode[]
  readonly slots: readonly ({ readonly master: ClusterNode } | undefined)[]
  nodeClient(node: ClusterNode): Promise<NodeRedisClient>
  /** Undocumented; if it is missing, the whole client is replaced instead. */
  readonly _slots?: { rediscover?(startWith: undefined, without: ReadonlySet<string>): Promise<void> }
}

export interface NodeRedisSentinel extends NodeRedisClient {
  getSentinelNode(): unknown
  getMasterNode(): unknown
}

interface SocketGiven {
  readonly socket?: object
}

/** The nested options a client may have been made with. */
export interface NodeRedisGiven extends SocketGiven {
  readonly defaults?: SocketGiven
  readonly nodeClientOptions?: SocketGiven
  readonly sentinelClientOptions?: SocketGiven
}
