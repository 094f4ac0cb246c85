/**
 * Bounds the event streams that are open: per token, so that one token does not take the permits of the others, and in
 * all, with some permits that only administrators get.
 */
import { type Caller, RequestError } from '../admin/endpoint.js'
import { countInFlight } from '../http/count-in-flight.js'

const MAX_OF_A_TOKEN = 25
const MAX_STREAMS = 100
const KEPT_FOR_ADMINISTRATORS = 25

export interface StreamPermits {
  /** Takes a permit and returns a function that gives it back, once. Throws a `RequestError` if there is none. */
  enter(caller: Caller): () => void
}

export function createStreamPermits(): StreamPermits {
  const perToken = countInFlight(MAX_OF_A_TOKEN)
  let taken = 0
  let takenByReaders = 0
  return {
    enter({ name, role }) {
      const isReader = role !== 'administer'
      if (taken >= MAX_STREAMS || (isReader && takenByReaders >= MAX_STREAMS - KEPT_FOR_ADMINISTRATORS)) {
        throw new RequestError(503, {
          field: 'stream',
          expected: `at most ${MAX_STREAMS} at a time`,
          got: 'one more',
        })
      }
      // Without tokens all callers are this machine, and there is nobody to keep a permit for.
      const leaveToken = name === null ? () => {} : perToken.enter(name)
      if (leaveToken === null) {
        throw new RequestError(429, {
          field: 'stream',
          expected: `at most ${MAX_OF_A_TOKEN} of a token at a time`,
          got: 'one more',
        })
      }
      taken++
      if (isReader) takenByReaders++
      let isIn = true
      return () => {
        if (!isIn) return
        isIn = false
        taken--
        if (isReader) takenByReaders--
        leaveToken()
      }
    },
  }
}
