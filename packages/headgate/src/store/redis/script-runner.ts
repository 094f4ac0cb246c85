import { HeadgateError } from '../../errors/headgate-error.js'
import type { RedisConnection } from './connection.js'
import { functionLibrary, type Script, scripts } from './scripts.gen.js'

// The server's words, possibly wrapped by a client: an HTTP client that batches prefixes them, GLIDE names the
// error. Either way it is the server's answer, and says that nothing ran.
const NO_SCRIPT = /^(?:Command failed: )?NOSCRIPT |NoScriptError: /
const NO_FUNCTION = /^(?:Command failed: )?ERR Function not found|ResponseError: Function not found/

/** Runs a script with its keys and arguments and returns the raw reply. */
export type RunScript = (script: Script, keys: string[], args: string[]) => Promise<unknown>

/**
 * Runs by hash, and with the text only if the server does not know the hash, which proves that nothing ran. After
 * any other failure the script may have run: it is never resent.
 */
export function runByHash(connection: RedisConnection): RunScript {
  return async (script, keys, args) => {
    try {
      return await connection.evalsha(script.sha, keys, args)
    } catch (error) {
      if (!says(error, NO_SCRIPT)) throw error
      return connection.eval(script.text, keys, args)
    }
  }
}

/** The functions can be flushed again between loading and calling them; each time that proves that nothing ran. */
const MAX_LOADS = 10

/** Runs as a Redis Function; the library is loaded only if the server does not know the function. */
export function runAsFunction(connection: RedisConnection): RunScript {
  const { fcall, loadFunctions } = connection
  if (fcall === undefined || loadFunctions === undefined) {
    throw new HeadgateError(
      'ERR_HEADGATE_INVALID_OPTION',
      "use: expected 'scripts' for a client without fcall and loadFunctions; got 'functions'",
    )
  }
  let loading: Promise<unknown> | null = null
  return async (script, keys, args) => {
    for (let loads = 0; ; loads++) {
      try {
        return await fcall(script.functionName, keys, args)
      } catch (error) {
        if (loads === MAX_LOADS || !says(error, NO_FUNCTION)) throw error
      }
      loading ??= loadFunctions(functionLibraryCode()).finally(() => {
        loading = null
      })
      await loading
    }
  }
}

/**
 * Returns the scripts as a library of Redis Functions, for `FUNCTION LOAD` by an operator or by the store itself.
 */
export function functionLibraryCode(): string {
  const functions = Object.values(scripts).map(
    ({ functionName, text }) =>
      `redis.register_function('${functionName}', function(KEYS, ARGV)\n${text}\nend)\n`,
  )
  return `#!lua name=${functionLibrary}\n${functions.join('')}`
}

function says(error: unknown, reply: RegExp): boolean {
  return error instanceof Error && reply.test(error.message)
}
