import type { Clock, Timers } from '../../clock.js'
import type { Limit } from '../../engine/limit.js'
import type { Answer, Question } from '../../engine/question.js'
import { firstCheckOf } from '../first-check.js'
import type { Store } from '../store.js'
import { type How, putOf, storeWith, type Waiter } from '../waiter.js'
import { type Breaker, type BreakerOptions, createBreaker, type Pass } from './breaker.js'
import { isNodeFailure, unavailable } from './failure.js'
import type { OnGuardEvent } from './guard-event.js'

export interface CircuitOptions extends BreakerOptions {
  /** The node that answers a question: each has a breaker of its own. */
  nodeOf(question: Question): string
  /** Told when a node has stopped answering, to replace a connection that may be dead. */
  onOpen?(node: string): void
  readonly clock: Clock
  readonly timers: Timers
  readonly random: () => number
  readonly onEvent: OnGuardEvent
}

interface Circuit {
  readonly breaker: Breaker
  readonly refusal: Error
  /** A question that failed there: one like it finds out whether the node is back. */
  probe: Question | null
}

/** A store behind breakers. */
export interface CircuitStore extends Store {
  /** Tries the nodes that are not asked at once: there is a new connection. */
  probeNow(): void
}

/** Stops asking a node that keeps failing, and looks for it in the background with one probe at a time. */
export function withCircuit(store: Store, options: CircuitOptions): CircuitStore {
  const put = putOf(store)
  const circuits = new Map<string, Circuit>()
  const callOffs = new Set<() => void>()
  let closed = false
  const nowMs = (): number => options.clock.nowUs() / 1000

  function circuitOf(node: string): Circuit {
    let circuit = circuits.get(node)
    if (circuit === undefined) {
      const breaker = createBreaker(options, options.random, state => {
        options.onEvent({ type: 'breaker', node, state })
        if (state === 'open') afterOpening(node)
      })
      circuit = { breaker, refusal: unavailable(node), probe: null }
      circuits.set(node, circuit)
    }
    return circuit
  }

  function afterOpening(node: string): void {
    // Calls that closing cut off fail, too: nobody is to look for the node any more, nor to connect to it.
    if (closed) return
    try {
      options.onOpen?.(node)
    } catch {
      // Whoever could not replace a connection must not keep those who wait from being told.
    }
    const circuit = circuits.get(node) as Circuit
    const waitMs = Math.ceil((circuit.breaker.probeAtMs ?? 0) - nowMs()) + 1
    const callOff = options.timers.inBackground(waitMs, () => {
      callOffs.delete(callOff)
      void probe(circuit)
    })
    callOffs.add(callOff)
  }

  async function probe(circuit: Circuit, early = false): Promise<void> {
    if (circuit.probe === null) return
    const startMs = nowMs()
    const pass = circuit.breaker.enterProbe(startMs, early)
    if (pass === null) return
    const failure = await Promise.resolve(store.decide(probeLike(circuit.probe))).then(
      () => null,
      error => error,
    )
    const endMs = nowMs()
    if (failure !== null && isNodeFailure(failure)) circuit.breaker.failed(pass, endMs)
    else circuit.breaker.probeSucceeded(pass, endMs, endMs - startMs)
  }

  /** Tells the breaker what became of a question before it tells whoever waits. */
  class Passage implements Waiter<Answer> {
    constructor(
      readonly circuit: Circuit,
      readonly pass: Pass,
      readonly question: Question,
      readonly waiter: Waiter<Answer>,
    ) {}

    answered(answer: Answer): void {
      this.circuit.breaker.succeeded(this.pass)
      this.waiter.answered(answer)
    }

    failed(error: unknown): void {
      const { breaker } = this.circuit
      this.circuit.probe = this.question
      if (isNodeFailure(error)) breaker.failed(this.pass, nowMs())
      else breaker.succeeded(this.pass)
      this.waiter.failed(error)
    }
  }

  function putGuarded(how: How, question: Question, waiter: Waiter<Answer>): Answer | null {
    const circuit = circuitOf(options.nodeOf(question))
    const pass = circuit.breaker.enter()
    if (pass !== null) {
      const answer = put(how, question, new Passage(circuit, pass, question, waiter))
      if (answer !== null) circuit.breaker.succeeded(pass)
      return answer
    }
    waiter.failed(circuit.refusal)
    return null
  }

  return storeWith(putGuarded, {
    source: store.source,
    refund: store.refund,
    reset: store.reset,
    probeNow() {
      for (const circuit of circuits.values()) void probe(circuit, true)
    },
    close() {
      closed = true
      for (const callOff of callOffs) callOff()
      callOffs.clear()
      return store.close()
    },
  })
}

const PROBE_NAME = 'probe'
const PROBE_UNITS = 1_000_000
const PROBE_WINDOW_US = 1_000_000

/**
 * A question whose answer proves that the node decides: it takes the same commands and the same slot, and writes,
 * because a node that is out of memory or has become a replica still answers what only reads. What it charges is a key
 * of its own that no limit has and that expires in seconds.
 */
function probeLike(question: Question): Question {
  const like = firstCheckOf(question)
  if (like === undefined) return question
  const { subject, scope } = like
  const check = { subject, scope, name: PROBE_NAME, limit: roomy(like.limit), cost: 1 }
  return { alternatives: [[check]], shadow: [] }
}

function roomy(limit: Limit): Limit {
  return limit.algorithm === 'token-bucket'
    ? { ...limit, limit: PROBE_UNITS, refillPerSecond: PROBE_UNITS }
    : { ...limit, limit: PROBE_UNITS, windowUs: PROBE_WINDOW_US }
}
