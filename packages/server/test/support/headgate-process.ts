import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

/** The exit code and output of a finished `headgate`. */
export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface HeadgateProcess {
  readonly child: ChildProcess
  readonly gatewayUrl: string
  readonly adminUrl: string
  stdout(): string
  /** Sends a signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<Finished>
}

/** Runs `headgate` as a user would, to its end. */
export async function runHeadgate(
  args: readonly string[],
  cwd?: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  return start(args, cwd, env).finished
}

/** A machine that is busy with other tests is not a Redis that fails: what is not about the deadline waits longer. */
const PATIENT = ['--deadline', '10000']

/** Runs `headgate serve` on free ports and waits until it listens. With Redis its deadline is long, unless given. */
export async function serveHeadgate(...args: string[]): Promise<HeadgateProcess> {
  return serveHeadgateIn({}, ...args)
}

/** The same with settings in its environment, in a folder. */
export async function serveHeadgateIn(
  { cwd, env = {} }: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> },
  ...args: string[]
): Promise<HeadgateProcess> {
  const isPatient = args.includes('--redis') && !args.includes('--deadline')
  const { child, output, finished } = start(
    ['serve', '--port', '0', '--admin-port', '0', ...args, ...(isPatient ? PATIENT : [])],
    cwd,
    env,
  )
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', () => output.stdout.includes('Stop with Ctrl-C') && resolve())
    finished.then(({ stderr }) => reject(new Error(`headgate ended before it listened: ${stderr}`)))
  })
  return {
    child,
    gatewayUrl: urlAfter('gateway', output.stdout),
    adminUrl: urlAfter('decision API', output.stdout),
    stdout: () => output.stdout,
    end: signal => {
      child.kill(signal)
      return finished
    },
  }
}

function start(args: readonly string[], cwd?: string, env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd,
    // What makes tests long is no setting of the server, which would say so.
    env: { ...process.env, HEADGATE_LONG: undefined, ...env },
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', chunk => {
    output.stdout += chunk
  })
  child.stderr.on('data', chunk => {
    output.stderr += chunk
  })
  const finished = once(child, 'close').then(([code]): Finished => ({ code, ...output }))
  return { child, output, finished }
}

function urlAfter(label: string, text: string): string {
  const url = new RegExp(`${label} +(https?://\\S+)`).exec(text)?.[1]
  if (url === undefined) throw new Error(`no ${label} in: ${text}`)
  return url
}
