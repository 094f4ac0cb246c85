/**
 * Keys of plain subjects. A key put together of ten pieces stays ten pieces until it is written to the socket, and joining
 * them there takes longer than writing them.
 */
import type { Check } from '../engine/question.js'
import { redisKey } from '../subject/key.js'

type Named = Pick<Check, 'subject' | 'scope' | 'name'>

/** Letters, digits and marks that nothing has to be done to, on both sides of the only colon. */
const PLAIN = /^[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+$/
const MAX_PLAIN_LENGTH = 96
/** Stands for a plain subject. */
const SOMEBODY = 'somebody:1'
/** Names whose keys are known around the subject; more than a policy file has. */
const MAX_NAMES = 256

/** The part of a key before and behind a plain subject. */
interface Around {
  readonly before: string
  readonly behind: string
}

/** Makes the function that writes the Redis key of a check, the same as `redisKey`. */
export function createKeyWriter(prefix: string, tenant: string): (check: Named) => string {
  const byName = new Map<string, Around>()

  const keyOf = ({ subject, scope, name }: Named): string =>
    redisKey({ prefix, tenant, subject, scope, name })

  /** Around a subject of the scope `global`. */
  function around(name: string): Around {
    let known = byName.get(name)
    if (known === undefined) {
      const key = keyOf({ subject: SOMEBODY, scope: 'global', name })
      // No brace comes after that of the subject.
      const at = key.lastIndexOf(`${SOMEBODY}}`)
      known = { before: key.slice(0, at), behind: key.slice(at + SOMEBODY.length) }
      if (byName.size >= MAX_NAMES) byName.clear()
      byName.set(name, known)
    }
    return known
  }

  return check => {
    const { subject, scope, name } = check
    if (scope !== 'global' || subject.length > MAX_PLAIN_LENGTH || !PLAIN.test(subject)) return keyOf(check)
    const { before, behind } = around(name)
    return before + subject + behind
  }
}
