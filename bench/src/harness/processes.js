/** Starts programs and measuring processes that never outlive us, and reads what they use from /proc. */
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** @type {Set<number>} */
const guarded = new Set()
/** @type {import('node:child_process').ChildProcess | undefined} */
let watcher

/** When we are killed outright, no handler of ours runs, but the kernel closes our pipes: a shell waits for that. */
const WATCH = 'while read -r pid; do pids="$pids $pid"; done; kill -9 $pids 2>/dev/null'

/**
 * Ensures that a process we started ends with us, however we end. Call the result once the process has ended.
 *
 * @param {number} pid
 */
function guardProcess(pid) {
  if (watcher === undefined) {
    // In a session of its own, because Ctrl-C must not reach it.
    watcher = spawn('sh', ['-c', WATCH], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
    watcher.unref()
    const { stdin } = watcher
    if (stdin !== null && 'unref' in stdin && typeof stdin.unref === 'function') stdin.unref()
    process.on('exit', () => {
      watcher?.kill('SIGKILL')
      for (const guardedPid of guarded) kill(guardedPid)
    })
  }
  guarded.add(pid)
  watcher.stdin?.write(`${pid}\n`)
  return () => void guarded.delete(pid)
}

/** @param {number} pid */
function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It had already ended.
  }
}

/**
 * @typedef {object} Program
 * @property {number} pid
 * @property {RegExpExecArray} said What of its output said that it is ready.
 * @property {number} readyMs How long it took to say so.
 * @property {(signal: NodeJS.Signals) => void} signal
 * @property {() => Promise<void>} stop Asks it to end, and kills it after five seconds.
 */

/**
 * Starts a program and resolves once its output says that it is ready.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ ready: RegExp, env?: NodeJS.ProcessEnv }} options
 * @returns {Promise<Program>}
 */
export async function startProgram(command, args, { ready, env = process.env }) {
  const startedMs = performance.now()
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  const ended = once(child, 'exit')
  ended.catch(() => {})
  const { pid } = child
  if (pid === undefined) throw new Error(`${command} could not be started`)
  child.once('exit', guardProcess(pid))
  const { promise, resolve, reject } = withResolvers()
  let output = ''
  /** @param {Buffer} chunk */
  const listen = chunk => {
    output += chunk
    const found = ready.exec(output)
    if (found === null) return
    // From here on its output is only drained, so that it can go on writing.
    for (const stream of [child.stdout, child.stderr]) stream.off('data', listen).resume()
    resolve(found)
  }
  child.stdout.on('data', listen)
  child.stderr.on('data', listen)
  child.once('exit', code =>
    reject(new Error(`${command} ended with ${code} before it was ready:\n${output}`)),
  )
  const said = await promise
  return {
    pid,
    said,
    readyMs: performance.now() - startedMs,
    signal: signal => void child.kill(signal),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      const insist = setTimeout(() => child.kill('SIGKILL'), 5_000)
      await ended
      clearTimeout(insist)
    },
  }
}

/** @returns {{ promise: Promise<any>, resolve: (value: any) => void, reject: (reason: Error) => void }} */
function withResolvers() {
  /** @type {any} */
  const out = {}
  out.promise = new Promise((resolve, reject) => Object.assign(out, { resolve, reject }))
  return out
}

/** A measuring process of ours. It answers one message at a time. If it fails, the error carries its output. */
export class Child {
  /** @type {import('node:child_process').ChildProcess} */
  #process
  #output = ''

  /** @param {URL} file @param {...string} args */
  constructor(file, ...args) {
    this.#process = fork(fileURLToPath(file), args, {
      execArgv: ['--expose-gc'],
      // Passes lists of numbers without turning them into text.
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#process.once('exit', guardProcess(this.pid))
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on('data', text => {
        this.#output += text
      })
    }
  }

  get pid() {
    return /** @type {number} */ (this.#process.pid)
  }

  /** Waits for the next message. @returns {Promise<any>} */
  receive() {
    const child = this.#process
    return new Promise((resolve, reject) => {
      /** @param {unknown} message */
      const onMessage = message => {
        child.off('exit', onExit)
        resolve(message)
      }
      /** @param {number | null} code */
      const onExit = code => {
        child.off('message', onMessage)
        reject(new Error(`a measuring process ended with ${code}\n${this.#output}`))
      }
      child.once('message', onMessage)
      child.once('exit', onExit)
    })
  }

  /** @param {import('node:child_process').Serializable} message @returns {Promise<any>} */
  request(message) {
    const answer = this.receive()
    this.#process.send(message)
    return answer
  }

  stop() {
    this.#process.kill()
  }
}

/** Returns the microseconds of processor time that a process has used, its threads included. @param {number} pid */
export function cpuMicrosOf(pid) {
  let nanos = 0
  for (const thread of list(`/proc/${pid}/task`))
    nanos += Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0])
  return nanos / 1000
}

/** Returns the resident memory of a process in bytes; NaN where there is no /proc. @param {number} pid */
export function residentBytesOf(pid) {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`))?.[1]) * 1024
}

/** Counts the open files and sockets of a process; NaN where there is no /proc. @param {number} pid */
export function descriptorsOf(pid) {
  return list(`/proc/${pid}/fd`).length || Number.NaN
}

/** @param {string} path */
function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** @param {string} path */
function list(path) {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
