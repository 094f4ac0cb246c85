import { adminPort } from './admin-port.js'
import type { AttackGroup } from './attack.js'
import { connections } from './connections.js'
import { elsewhere } from './elsewhere.js'
import { framing } from './framing.js'
import { answers } from './fuzz-answers.js'
import { requests } from './fuzz-requests.js'
import { identities } from './identities.js'
import { overload } from './overload.js'
import { proxies } from './proxies.js'
import { questions } from './questions.js'
import { rateLimitService } from './rate-limit-service.js'
import { redisReplies } from './redis-replies.js'
import { rules } from './rules.js'

/** Every group of attacks, in the order of the report. */
export const groups: readonly AttackGroup[] = [
  framing,
  requests,
  elsewhere,
  answers,
  connections,
  overload,
  identities,
  rules,
  proxies,
  questions,
  rateLimitService,
  adminPort,
  redisReplies,
]
