/** The tokens of a model as something to limit: what a rule reserves for a request, and which limits that charges. */
import type { AppliedLevel } from './applied-level.js'

/** `input` is the prompt, `output` the answer, `total` both. */
export type Meter = (typeof METERS)[number]
export const METERS = ['input', 'output', 'total'] as const

/** One kind of tokens that a rule limits. */
export interface MeterConfig {
  readonly meter: Meter
  /** Charged in tokens. */
  readonly policy: string
  /** The estimate, if the request does not tell. */
  readonly reserve: number
  /** Fields of the request's JSON body that tell, such as `max_tokens` or `generationConfig.maxOutputTokens`; the largest holds. */
  readonly from: readonly string[]
}

/** Estimates by meter; where there is none, `reserve` holds. */
export type Estimates = Partial<Readonly<Record<Meter, number>>>

const NO_METERS: readonly MeterConfig[] = []

/** The meters of the rules that decide or watch a request; each policy once. */
export function metersOf(levels: readonly AppliedLevel[]): readonly MeterConfig[] {
  let found = NO_METERS
  for (const { part, meters } of levels) {
    if (part === 'unused') continue
    for (const { meter } of meters) {
      if (!found.some(({ policy }) => policy === meter.policy)) found = [...found, meter]
    }
  }
  return found
}
