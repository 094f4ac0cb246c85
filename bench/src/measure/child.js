import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** A measuring process. It answers one message at a time. If it fails, the error carries its output. */
export class Child {
  /** @type {import('node:child_process').ChildProcess} */
  #process
  #output = ''

  /** @param {string} file Beside this one. @param {readonly string[]} args */
  constructor(file, args) {
    this.#process = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
      execArgv: ['--expose-gc'],
      // Passes lists of numbers without turning them into text.
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on('data', text => {
        this.#output += text
      })
    }
  }

  get pid() {
    return /** @type {number} */ (this.#process.pid)
  }

  /** Waits for the next message. @returns {Promise<unknown>} */
  receive() {
    return new Promise((resolve, reject) => {
      const child = this.#process
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

  /** @param {import('node:child_process').Serializable} message @returns {Promise<unknown>} */
  request(message) {
    const answer = this.receive()
    this.#process.send(message)
    return answer
  }

  stop() {
    this.#process.kill()
  }
}
