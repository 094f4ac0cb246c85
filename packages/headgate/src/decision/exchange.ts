import { keepShape } from '../engine/keep-shape.js'
import type { Answer, Check, Question } from '../engine/question.js'
import { bindingIndex, decidingAlternative } from './binding.js'
import { type LimitVerdict, toLimitVerdict } from './limit-verdict.js'

/** A question with its answer, and what is worked out of them when somebody looks. */
export class Exchange {
  /** Kept once it has been said: it must not move with the clock. */
  resetAt: number | null = null
  private told: readonly LimitVerdict[] | null = null

  constructor(
    readonly question: Question,
    readonly answer: Answer,
    readonly cost: number,
  ) {}

  /** The answer of every limit of the alternative that decided. */
  get verdicts(): readonly LimitVerdict[] {
    this.told ??= this.tell()
    return this.told
  }

  /** The one of them that decided. */
  get binding(): LimitVerdict | null {
    const { answer } = this
    return this.verdicts[bindingIndex(answer.verdicts[decidingAlternative(answer)] ?? [])] ?? null
  }

  get shadow(): readonly LimitVerdict[] {
    const checks = this.question.shadow
    return this.answer.shadow.map((verdict, index) => toLimitVerdict(checks[index] as Check, verdict))
  }

  /** What was charged, and when that counts. */
  get charges(): readonly { check: Check; chargedAtUs: number }[] {
    const { question, answer } = this
    if (answer.charged < 0) return []
    const checks = question.alternatives[answer.charged] ?? []
    const verdicts = answer.verdicts[answer.charged] ?? []
    return checks.flatMap((check, index) => {
      const chargedAtUs = verdicts[index]?.chargedAtUs ?? null
      return chargedAtUs === null ? [] : [{ check, chargedAtUs }]
    })
  }

  private tell(): readonly LimitVerdict[] {
    const alternative = decidingAlternative(this.answer)
    const checks = this.question.alternatives[alternative] ?? []
    const verdicts = this.answer.verdicts[alternative] ?? []
    return verdicts.map((verdict, index) => toLimitVerdict(checks[index] as Check, verdict))
  }
}

keepShape(new Exchange({ alternatives: [], shadow: [] }, { charged: 0, verdicts: [], shadow: [] }, 1))
