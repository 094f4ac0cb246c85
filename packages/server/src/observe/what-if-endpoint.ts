import { isHeadgateError } from 'headgate'
import { ConfigError } from 'headgate/config'
import type { ArrivalSample } from 'headgate/internal'
import { formatIssue, type PolicyInput } from 'headgate/internal'
import { type Endpoint, RequestError, reads } from '../admin/endpoint.js'
import { readFields } from '../admin/read-body.js'
import { jsonAnswer } from '../http/problem.js'
import { playWhatIf } from './what-if.js'

export function whatIfEndpoint(arrivals: () => Promise<ArrivalSample>): Endpoint {
  return {
    path: '/v1/whatif',
    methods: {
      POST: reads(async req => {
        const { policy, tier, limits } = await readFields(req, ['policy', 'tier', 'limits'])
        const name = policy ?? tier
        if (typeof name !== 'string' || (policy !== undefined && tier !== undefined)) {
          throw new RequestError(400, { field: 'policy', expected: 'either a policy or a tier, as a string' })
        }
        const played = await playWhatIf(
          await arrivals(),
          arrival => (policy === undefined ? arrival.tier === name : arrival.policy === name),
          limits as PolicyInput,
        ).catch(error => {
          if (!isHeadgateError(error)) throw error
          const got = error instanceof ConfigError ? error.issues.map(formatIssue).join('; ') : error.message
          throw new RequestError(400, { field: 'limits', expected: 'limits as in the policy file', got })
        })
        if (played === null) {
          throw new RequestError(409, {
            field: 'policy',
            expected: 'one that somebody of the sample has asked for in the last hour',
            got: 'another',
          })
        }
        return jsonAnswer(200, { policy: name, ...played })
      }),
    },
  }
}
