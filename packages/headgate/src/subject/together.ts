import { HeadgateError } from '../errors/headgate-error.js'
import { createSubjectNamer, type Subject, type SubjectInput } from './subject.js'

const nameOf = /* @__PURE__ */ createSubjectNamer({ onWarning: () => {} })

/**
 * Returns several subjects as one: an account at an address, `together('user:ada', 'ip:192.0.2.1')`. What is charged to it says
 * nothing about either alone, so that nobody is shut out by what others do in its name. An IPv6 address counts as its network.
 *
 * @example
 * await limiter.check(together('user:ada', 'ip:192.0.2.1'), { policy: 'api' })
 */
export function together(...subjects: readonly SubjectInput[]): Subject {
  if (subjects.length < 2) {
    throw new HeadgateError('ERR_HEADGATE_INVALID_SUBJECT', {
      field: 'together',
      expected: 'at least two subjects',
      got: String(subjects.length),
    })
  }
  return joined(subjects.map(nameOf))
}

/** The same for subjects by the names they are stored under. */
export function joined(names: readonly string[]): Subject {
  const parts = names.map(name => [name.slice(0, name.indexOf(':')), name.slice(name.indexOf(':') + 1)])
  return {
    type: parts.map(([type]) => type).join('+'),
    // No id can look like two: the bar between them is escaped within.
    id: parts.map(([, id = '']) => id.replace(/[%|]/g, encodeURIComponent)).join('|'),
  }
}
