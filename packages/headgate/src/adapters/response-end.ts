/** Notices the end of a response, however it comes about: sent, failed, or the client gone. */

/**
 * Called with the status of a response that has ended; null if it has none or never began. Only the first call
 * counts.
 */
export type Ended = (status: number | null) => void

/** The part of a Node response that reveals its end. */
interface Closing {
  readonly closed?: boolean
  readonly destroyed: boolean
  readonly headersSent?: boolean
  readonly statusCode?: number
  once(event: 'close', listener: () => void): unknown
}

/** Watches a response of Node's own server, or the socket of an upgrade. */
export function endOnClose(ended: Ended | null, response: Closing): void {
  if (ended === null) return
  const end = () => ended(response.headersSent === true ? (response.statusCode ?? null) : null)
  if (response.closed || response.destroyed) end()
  else response.once('close', end)
}

/** Watches a call that has a result instead of a response. */
export async function endAfter<Result>(ended: Ended | null, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } finally {
    ended?.(null)
  }
}

/** Ends at once if `work` fails before there is a response. */
export async function endIfThrown<Result>(
  ended: Ended | null,
  work: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    ended?.(null)
    throw error
  }
}

/** Watches a `Response`: returns it with a body that notices when it was read, failed or was cancelled. */
export function endWhenRead(ended: Ended | null, response: Response): Response {
  if (ended === null) return response
  const { body, status } = response
  const end = () => ended(status)
  if (body === null) {
    end()
    return response
  }
  return asAnswered(new Response(tellEnd(body, end), response), response)
}

/** Copies the properties that the constructor cannot set but callers of `fetch` read. */
function asAnswered(copy: Response, { url, redirected, type }: Response): Response {
  const value = (of: unknown) => ({ value: of, enumerable: true })
  return Object.defineProperties(copy, {
    url: value(url),
    redirected: value(redirected),
    type: value(type),
  })
}

function tellEnd(body: ReadableStream<Uint8Array>, end: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) {
          controller.enqueue(value)
          return
        }
        end()
        controller.close()
      } catch (error) {
        end()
        controller.error(error)
      }
    },
    cancel(reason) {
      end()
      return reader.cancel(reason)
    },
  })
}
