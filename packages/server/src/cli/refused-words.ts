import { printable } from 'headgate/config'
import type { RefusedSubject } from '../operators/operator-client.js'

/** Tells in lines who was refused, what is left of its limits, and why. */
export function refusedWords({ subject, handle, tier, limits, violations }: RefusedSubject): string {
  const refused = violations.map(
    ({ atMs, policy, limit, reason }) =>
      `refused ${new Date(atMs).toISOString()}: ${reason}, ${limit ?? `policy ${policy}`}`,
  )
  const head = `${subject}, handle ${handle}, tier ${tier ?? 'none'}`
  return [head, ...limits.map(({ text }) => `  ${text}`), ...refused].map(line => printable(line)).join('\n')
}
