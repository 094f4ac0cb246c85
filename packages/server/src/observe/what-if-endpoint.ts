import { isHeadgateError } from 'headgate'
import { ConfigError, type PolicyInput } from 'headgate/config'
import type { ArrivalSample } from 'headgate/statistics'
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
          throw new RequestError(400, 'policy', 'expected either a policy or a tier, as a string')
        }
        const played = await playWhatIf(
          await arrivals(),
          arrival => (policy === undefined ? arrival.tier === name : arrival.policy === name),
          limits as PolicyInput,
        ).catch(error => {
          if (!(error instanceof ConfigError) && !isHeadgateError(error)) throw error
          throw new RequestError(400, 'limits', `expected limits as in the policy file; ${error.message}`)
        })
        if (played === null) {
          throw new RequestError(409, 'policy', 'nobody of the sample has asked for it in the last hour')
        }
        return jsonAnswer(200, { policy: name, ...played })
      }),
    },
  }
}
