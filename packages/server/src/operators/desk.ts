/** Where the command line changes switches and overrides: at a running server, or in Redis itself. */
import type { Control, Gate, Override, OverrideOptions, OverrideTarget } from 'headgate'

export interface Desk {
  control(): Promise<Control>
  setControl(change: Partial<Control>): Promise<Control>
  overrides(): Promise<readonly Override[]>
  setOverride(override: OverrideOptions): Promise<void>
  removeOverride(target: OverrideTarget): Promise<boolean>
  close(): Promise<void>
}

const ANSWER_WITHIN_MS = 5_000

/** The desk of a gate in this process. */
export function gateDesk(gate: Gate): Desk {
  return {
    control: async () => gate.control.get(),
    async setControl(change) {
      await gate.control.set(change)
      return gate.control.get()
    },
    overrides: async () => gate.overrides.list(),
    setOverride: override => gate.overrides.set(override),
    removeOverride: target => gate.overrides.remove(target),
    close: () => gate.close(),
  }
}

/** The desk of a running `headgate serve`, by the address of its decision API. */
export function serverDesk(url: string): Desk {
  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(new URL(path, url), {
      method,
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      ...(body !== undefined && {
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      }),
    }).catch(error => {
      const reason = (error.cause as NodeJS.ErrnoException | undefined)?.code ?? (error as Error).message
      throw new Error(`--server: expected a headgate server at ${url}; got ${reason}`)
    })
    const value = (await answer.json().catch(() => ({}))) as T & { detail?: string }
    if (answer.ok) return value
    throw new Error(
      value.detail ?? `--server: expected a headgate server at ${url}; got status ${answer.status}`,
    )
  }

  return {
    control: () => call('GET', '/v1/control'),
    setControl: change => call('PATCH', '/v1/control', change),
    overrides: async () => (await call<{ overrides: Override[] }>('GET', '/v1/overrides')).overrides,
    setOverride: override => call('PUT', '/v1/overrides', override),
    removeOverride: async target =>
      (await call<{ removed: boolean }>('DELETE', '/v1/overrides', target)).removed,
    close: async () => {},
  }
}
