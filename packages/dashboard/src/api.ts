/**
 * The admin port, asked from the page. The token lives in this tab alone (`sessionStorage`) and travels in a header, so that
 * no other site can make the browser send it.
 */

/** A failed request. `status` is 0 if nobody answered. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

const TOKEN = 'headgate-token'

export function readToken(): string | null {
  return sessionStorage.getItem(TOKEN)
}

export function keepToken(token: string | null): void {
  if (token === null) sessionStorage.removeItem(TOKEN)
  else sessionStorage.setItem(TOKEN, token)
}

/** Asks, and rejects with an `ApiError` for everything but a 2xx. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const token = readToken()
  const headers = new Headers(init.headers)
  if (token !== null) headers.set('Authorization', `Bearer ${token}`)
  let response: Response
  try {
    response = await fetch(path, { ...init, headers, cache: 'no-store', redirect: 'error' })
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error
    throw new ApiError(0, 'The server does not answer.')
  }
  if (response.ok) return response
  throw new ApiError(response.status, await detailOf(response))
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request(path, signal === undefined ? {} : { signal })).json() as Promise<T>
}

export async function sendJson<T>(
  method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  body: unknown,
): Promise<T> {
  const init = { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }
  return (await request(path, init)).json() as Promise<T>
}

async function detailOf(response: Response): Promise<string> {
  try {
    const { detail } = (await response.json()) as { detail?: unknown }
    if (typeof detail === 'string') return detail
  } catch {
    // Without a problem body, the status is all we know.
  }
  return `The server answered ${response.status}.`
}
