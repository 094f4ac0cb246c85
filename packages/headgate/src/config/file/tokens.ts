import { MAX_UNITS } from '../../algorithms/algorithm.js'
import { METERS, type MeterConfig } from '../../policy/token-meters.js'
import { oneOrMore } from '../shape/lists.js'
import { record } from '../shape/maps.js'
import { nameOf, text, wholeNumber } from '../shape/scalars.js'
import { mapped } from '../shape/shape.js'

const bodyField = text(
  'a field of the body, such as max_tokens or generationConfig.maxOutputTokens',
  /^[\w-]{1,64}(?:\.[\w-]{1,64}){0,7}$/,
)

const meter = record({
  policy: {
    shape: nameOf('policies'),
    text: 'The policy that is charged, one unit a token. Each meter has one of its own.',
    required: true,
  },
  reserve: {
    shape: wholeNumber(1, MAX_UNITS),
    text: 'The tokens that a request reserves until its response tells.',
    required: true,
  },
  from: {
    shape: oneOrMore(bodyField),
    text: "The field of the request's JSON body that is reserved instead, or a list of them, of which the largest holds. The first 256 KB are looked at; where it is missing, no whole number, or the body is larger or compressed, `reserve` holds.",
    leftOut: 'nothing of the body is read',
  },
})

const fields = record({
  input: {
    shape: meter,
    text: 'The prompt, also what the provider has in its cache.',
    leftOut: 'not limited',
  },
  output: { shape: meter, text: 'The answer, also what is thought.', leftOut: 'not limited' },
  total: { shape: meter, text: 'Both together.', leftOut: 'not limited' },
})

/** Reads the tokens of a model that a rule limits. */
export const tokens = {
  ...mapped(fields, (read, place): readonly MeterConfig[] | undefined => {
    const found: MeterConfig[] = []
    for (const name of METERS) {
      const { [name]: given } = read
      if (given === undefined) continue
      const { policy, reserve, from = [] } = given
      if (found.some(other => other.policy === policy)) {
        const expected = 'a policy that no other meter charges'
        return place.below(name, 'policy').reject({ expected, got: `${policy} again` })
      }
      found.push({ meter: name, policy, reserve, from })
    }
    if (found.length > 0) return found
    return place.reject({ expected: `at least one of ${METERS.join(', ')}`, got: 'none' })
  }),
  words: `a map of ${METERS.join(', ')}`,
  schema: { ...fields.schema, minProperties: 1 },
}
