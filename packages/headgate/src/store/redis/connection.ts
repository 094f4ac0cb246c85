/**
 * The part of a Redis client that the store needs: running a script by its hash and by its text, routed by the
 * first key. Anything with these two functions will do; the rest is used if present. An error reply must reject
 * with an `Error` that has the server's words, and nothing may be resent after a lost reply, because it would be
 * charged twice.
 */
export interface RedisConnection {
  evalsha(sha: string, keys: string[], args: string[]): Promise<unknown>
  eval(text: string, keys: string[], args: string[]): Promise<unknown>
  /** Calls a Redis Function. Only needed for `use: 'functions'`. */
  fcall?(name: string, keys: string[], args: string[]): Promise<unknown>
  /** Loads a library of Redis Functions on every primary. Only needed for `use: 'functions'`. */
  loadFunctions?(code: string): Promise<unknown>
  /** Returns the server's INFO text, for the inspection at start-up. */
  info?(): Promise<string>
  /**
   * Whether every call stands for itself and nothing is connected, as over HTTP: nothing is sent before the first
   * question, and background work is done when a question comes.
   */
  readonly onDemand?: boolean
  /** Whether keys are spread over several nodes, so that subjects must be asked one by one. */
  readonly cluster?: boolean
  /** Returns host and port of the one server, for operators. */
  address?(): string | undefined
  /** Returns the node that holds a key, if there are several. */
  nodeOf?(key: string): string
  /** Drops an unresponsive connection and makes a new one. */
  replace?(node: string): void
  /** Registers a listener for every connection that was lost and can be used again. */
  onConnected?(listener: () => void): void
  /** Settles when commands can be sent. */
  ready?(): Promise<void>
  /** Returns the last error while connecting, so that a call given up before that can name it. Never a secret. */
  problem?(): string | undefined
  close?(): Promise<void>
}
