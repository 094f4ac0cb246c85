/**
 * Looks into the beginning of a request's JSON body for the number of tokens it asks for. What was read is kept, so that the
 * upstream gets the body byte for byte.
 */
import type { IncomingMessage } from 'node:http'
import { MAX_UNITS, type Meter, type MeterConfig } from 'headgate/internal'
import { GatheredBytes } from '../http/gathered-bytes.js'
import { hasBody } from './end-to-end-headers.js'

/** Why a body does not tell. */
export type Untold =
  | 'body-unreadable'
  | 'body-compressed'
  | 'body-too-large'
  | 'field-missing'
  | 'field-invalid'

export interface AskedTokens {
  /** What the body asks for, by meter; where it does not tell, the rule's `reserve` holds. */
  readonly estimates: Partial<Readonly<Record<Meter, number>>>
  readonly untold: readonly { readonly meter: Meter; readonly reason: Untold }[]
  /** What has been read of the body. */
  readonly begun: Buffer[]
}

const MOST_BYTES = 256 * 1_024

/** Resolves to null if the client has left before its body was complete. `willRead` is called if the body is awaited. */
export async function readMaxTokens(
  req: IncomingMessage,
  meters: readonly MeterConfig[],
  willRead: () => void,
): Promise<AskedTokens | null> {
  const told = meters.filter(({ from }) => from.length > 0)
  if (told.length === 0) return { estimates: {}, untold: [], begun: [] }
  const nothing = (reason: Untold, begun: Buffer[] = []): AskedTokens => ({
    estimates: {},
    untold: told.map(({ meter }) => ({ meter, reason })),
    begun,
  })
  const { headers } = req
  // Whatever type it claims: a client could name another one, and an upstream read JSON all the same.
  if (!hasBody(req)) return nothing('body-unreadable')
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') return nothing('body-compressed')
  if (Number(headers['content-length'] ?? 0) > MOST_BYTES) return nothing('body-too-large')
  willRead()
  const beginning = await readBeginning(req)
  if (beginning === null) return null
  const begun = [beginning]
  if (!req.readableEnded) return nothing('body-too-large', begun)
  const body = parse(beginning)
  if (body === null) return nothing('body-unreadable', begun)
  return { ...pick(body, told), begun }
}

/** Reads until the body has ended or is too large; null if it breaks off. */
function readBeginning(req: IncomingMessage): Promise<Buffer | null> {
  return new Promise(resolve => {
    const gathered = new GatheredBytes()
    const settle = (read: Buffer | null) => {
      req.off('data', onData).off('end', onEnd).off('close', onClose)
      req.pause()
      resolve(read)
    }
    const onData = (chunk: Buffer) => {
      gathered.add(chunk)
      if (gathered.length > MOST_BYTES) settle(gathered.bytes())
    }
    const onEnd = () => settle(gathered.bytes())
    const onClose = () => settle(null)
    if (req.destroyed) return resolve(null)
    req.on('data', onData).on('end', onEnd).on('close', onClose)
  })
}

function parse(body: Buffer): object | null {
  try {
    const value: unknown = JSON.parse(body.toString())
    return typeof value === 'object' ? value : null
  } catch {
    return null
  }
}

function pick(body: object, told: readonly MeterConfig[]): Pick<AskedTokens, 'estimates' | 'untold'> {
  const estimates: Partial<Record<Meter, number>> = {}
  const untold: { meter: Meter; reason: Untold }[] = []
  for (const { meter, from } of told) {
    const values = from
      .map(path => valueAt(body, path))
      .filter(value => value !== undefined && value !== null)
    const whole = values.filter(value => Number.isInteger(value) && Number(value) >= 1).map(Number)
    if (whole.length > 0) estimates[meter] = Math.min(MAX_UNITS, Math.max(...whole))
    else untold.push({ meter, reason: values.length === 0 ? 'field-missing' : 'field-invalid' })
  }
  return { estimates, untold }
}

function valueAt(body: object, path: string): unknown {
  let value: unknown = body
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}
