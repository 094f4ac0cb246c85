/** Every flag of a command may be set in the environment: `--admin-port` as `HEADGATE_ADMIN_PORT`. */
import { type Command, InvalidArgumentError, type Option } from 'commander'
import { type Environment, mistakeAt, nearestName, shownName } from 'headgate/internal'
import { UsageError } from './usage-error.js'

const SWITCH = new Map([
  ['on', true],
  ['true', true],
  ['1', true],
  ['off', false],
  ['false', false],
  ['0', false],
])

/**
 * Takes flags that were not typed from the environment; an empty variable counts as unset. Several values are
 * separated by spaces.
 */
export function takeFlagsFrom(environment: Environment, command: Command): void {
  for (const option of command.options) {
    const name = option.attributeName()
    const variable = variableOf(option)
    const value = isServiceLink(variable, environment[variable]) ? undefined : environment[variable]
    const source = command.getOptionValueSource(name)
    if (value === undefined || value === '' || (source !== undefined && source !== 'default')) continue
    command.setOptionValueWithSource(name, parsed(option, value), 'env')
  }
}

/** Variables that are read elsewhere. */
const OTHERS = [
  'HEADGATE_TOKEN',
  'HEADGATE_SERVER',
  'HEADGATE_SUBJECT_SECRET',
  'HEADGATE_SUBJECT_SECRET_FILE',
]
const PREFIX = 'HEADGATE_'

/** Says which variables look like ours and are not, in one line; none if there is none. */
export function unknownVariables(environment: Environment, command: Command): string[] {
  const known = [...command.options.map(variableOf), ...OTHERS]
  const unknown = Object.keys(environment).filter(
    name => name.startsWith(PREFIX) && !known.includes(name) && !isServiceLink(name, environment[name]),
  )
  if (unknown.length === 0) return []
  const named = unknown.map(name => {
    const meant = nearestName(name, known)
    return meant === null ? shownName(name) : `${shownName(name)} (did you mean ${meant}?)`
  })
  return [`no flag is set by ${named.join(', ')}`]
}

/**
 * Kubernetes tells every container of a namespace about its services by such variables, and a service called headgate,
 * or headgate-admin, has names that look like our flags: `HEADGATE_PORT=tcp://10.0.0.7:8080`.
 */
function isServiceLink(name: string, value = ''): boolean {
  return (
    /_SERVICE_(?:HOST|PORT)(?:_|$)/.test(name) ||
    /_PORT_\d{1,5}_(?:TCP|UDP|SCTP)(?:_|$)/.test(name) ||
    (name.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value))
  )
}

/** Makes an error about a flag name the variable instead, if the value came from there. */
export function inVariable(error: unknown, command: Command): unknown {
  if (!(error instanceof UsageError) || error.mistake === undefined) return error
  // An option of several values has the name of the one behind it: `--admin-token ada`.
  const [flag, ...rest] = error.mistake.field.split(' ')
  const option = command.options.find(({ long }) => long === flag)
  if (option === undefined || command.getOptionValueSource(option.attributeName()) !== 'env') return error
  return new UsageError({ ...error.mistake, field: [variableOf(option), ...rest].join(' ') })
}

function variableOf({ long }: Option): string {
  return `HEADGATE_${(long ?? '').replace(/^--/, '').replaceAll('-', '_').toUpperCase()}`
}

function parsed(option: Option, value: string): unknown {
  if (option.variadic) return value.trim().split(/\s+/)
  if (option.isBoolean()) return parseSwitch(option, value)
  try {
    return option.parseArg === undefined ? value : option.parseArg(value, undefined)
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error
    throw new UsageError(`${variableOf(option)}: ${error.message}`)
  }
}

function parseSwitch(option: Option, value: string): boolean {
  const isOn = SWITCH.get(value.toLowerCase())
  if (isOn !== undefined) return isOn
  throw new UsageError(mistakeAt(variableOf(option), 'on or off', value))
}
