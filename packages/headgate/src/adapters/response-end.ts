/** Tells when a response is over, whichever way that comes about: sent, failed, or the client gone. */

/** Hears the status of a response that is over; null where there is none, or it was never begun. Only the first time counts. */
export type Ended = (status: number | null) => void

/** The part of a Node response that tells when it is over. */
interface Closing {
  readonly closed?: boolean
  readonly destroyed: boolean
  readonly headersSent?: boolean
  readonly statusCode?: number
  once(event: 'close', listener: () => void): unknown
}

/** For a response of Node's own server, or the socket of an upgrade. */
export function endOnClose(ended: Ended | null, response: Closing): void {
  if (ended === null) return
  const end = () => ended(response.headersSent === true ? (response.statusCode ?? null) : null)
  if (response.closed || response.destroyed) end()
  else response.once('close', end)
}

/** For a call that has a result instead of a response. */
export async function endAfter<Result>(ended: Ended | null, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } finally {
    ended?.(null)
  }
}

/** For what may fail before there is a response. */
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

/** For a `Response`: the same one, whose body tells when it was read to its end, failed, or is not wanted any more. */
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

/** A copy cannot be made with these, and callers of `fetch` read them. */
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
