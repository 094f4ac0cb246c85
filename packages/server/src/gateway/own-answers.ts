/**
 * What the gateway answers itself, in place of an upstream, and what it closes without an answer: counted by reason,
 * and logged from time to time. Denials by a limit are not among it; the limiter counts those.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { limitedAddress } from 'headgate/identify'
import { endSocket } from 'headgate/node-http'
import type { HttpAnswer, Rejection } from '../http/problem.js'
import { sendAnswer } from '../http/send-answer.js'
import { throttledLog, type WriteLine } from '../log/write-line.js'
import type { Cors } from './cors.js'

/** A rejection by the gateway itself. Its reason is a word for programs, and the label of a metric. */
export type OwnRejection = Rejection & { readonly reason: string }

/** Called for every such answer; a status of null means that the connection was closed without one. */
export type OnOwnAnswer = (reason: string, status: number | null) => void

export interface OwnAnswers {
  send(req: IncomingMessage, res: ServerResponse, answer: HttpAnswer): void
  /** Answers on a connection that node:http has given up. */
  end(socket: Socket, answer: HttpAnswer): void
  /** Counts what somebody else has answered or closed. */
  note(reason: string, status: number | null, socket: Socket): void
}

export interface OwnAnswersOptions {
  readonly log: WriteLine
  /** Which pages may read them, by the file in force. */
  cors(): Cors | null
  readonly onOwnAnswer?: OnOwnAnswer | undefined
}

export const PREFLIGHT = 'preflight'
const LINE_EVERY_MS = 10_000
/** No trouble, or logged by whoever saw it. */
const UNLOGGED = [PREFLIGHT, 'fault', 'upstream-unreachable', 'upstream-timeout', 'upstream-answer']

export function createOwnAnswers({ log, cors, onOwnAnswer }: OwnAnswersOptions): OwnAnswers {
  const logSome = throttledLog(log, LINE_EVERY_MS)
  const sinceLine = new Map<string, number>()

  function note(reason: string, status: number | null, socket: Socket, detail = ''): void {
    onOwnAnswer?.(reason, status)
    if (UNLOGGED.includes(reason)) return
    const count = (sinceLine.get(reason) ?? 0) + 1
    sinceLine.set(reason, count)
    logSome(
      reason,
      () => {
        sinceLine.delete(reason)
        const what = status === null ? 'connection closed' : String(status)
        const why = detail === '' ? reason : `${reason}: ${detail}`
        const more = count === 1 ? '' : ` (${count} since the last such line)`
        return `${what} for ip:${limitedAddress(socket.remoteAddress)}, ${why}${more}`
      },
      { level: 'warn', cause: reason },
    )
  }

  function noteAnswer({ reason, status, detail }: HttpAnswer, socket: Socket): void {
    if (reason !== undefined) note(reason, status, socket, detail)
  }

  return {
    send(req, res, answer) {
      noteAnswer(answer, req.socket)
      const isSaid = answer.reason === PREFLIGHT
      sendAnswer(req, res, isSaid ? answer : (cors()?.readable(req, answer) ?? answer))
    },
    end(socket, answer) {
      noteAnswer(answer, socket)
      endSocket(socket, answer)
    },
    note,
  }
}
