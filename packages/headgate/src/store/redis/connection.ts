/**
 * The part of a Redis client that the store needs: to run a script by its hash and by its text, routed by the first key.
 * Anything with these two functions will do; the rest is used where it is there. An error reply must reject with an
 * `Error` that says what the server said, and nothing may be sent again after a lost reply: it would be charged twice.
 */
export interface RedisConnection {
  evalsha(sha: string, keys: string[], args: string[]): Promise<unknown>
  eval(text: string, keys: string[], args: string[]): Promise<unknown>
  /** Calls a Redis Function. Needed for `use: 'functions'` only. */
  fcall?(name: string, keys: string[], args: string[]): Promise<unknown>
  /** Loads a library of Redis Functions on every primary. Needed for `use: 'functions'` only. */
  loadFunctions?(code: string): Promise<unknown>
  /** The server's INFO text, for the look at start-up. */
  info?(): Promise<string>
  /**
   * Whether every call stands for itself and nothing is connected, as over HTTP: nothing is sent before the first question,
   * and what other connections are used for in the background is done when a question comes.
   */
  readonly onDemand?: boolean
  /** Whether keys are spread over several nodes, so that subjects must be asked one by one. */
  readonly cluster?: boolean
  /** Host and port of the one server, for what operators read. */
  address?(): string | undefined
  /** The node that holds a key, where there are several. */
  nodeOf?(key: string): string
  /** Drops a connection that stopped answering and makes a new one. */
  replace?(node: string): void
  /** Tells of every connection that was lost and can be used again. */
  onConnected?(listener: () => void): void
  /** Settles when commands can be sent. */
  ready?(): Promise<void>
  /** The last error while connecting, so that a call given up before that can name it. Never a secret. */
  problem?(): string | undefined
  close?(): Promise<void>
}
