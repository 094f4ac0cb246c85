/**
 * The scripts for what most requests ask: one script per sequence of kinds of limits, without a loop over them, a table or a
 * look-up, put together from the sections of the algorithms' Lua files. All limits are read before anything is written. With the
 * numbers of a plan in its text, a script costs Redis a seventh less with one limit and a quarter less with four; a server
 * never forgets a text, so that only so many are made, and other plans send their numbers as arguments.
 */
import type { NamedLimit, Plan } from '../../check/plan.js'
import { type Kind, kinds, problem, type Script, testClock } from './scripts.gen.js'

/** Beyond this many limits a plan is asked by decide.lua: a function in Lua has at most 200 locals, and a log takes 18. */
const MOST_LIMITS = 8
/** Plans whose numbers are in a text, at a time: first come, first served, until the policies change. */
const MOST_TEXTS = 32
/** Texts of either form that one process makes in its life. */
const MOST_TEXTS_EVER = 256

/** A script for the checks of one plan. */
export interface StraightLine {
  readonly script: Script
  /** What it takes first: the numbers of its limits, unless they are in its text. */
  readonly args: readonly string[]
  /** What it takes then, before the cost: what changes with the time of the server. */
  readonly sent: readonly ((serverUs: number) => string)[]
  /** Whether a lone check is answered with one integer. */
  readonly hasAlone: boolean
}

/** Makes the straight-line scripts of a store's plans, each once. */
export class StraightLines {
  private byPlan = new WeakMap<Plan, StraightLine | null>()
  /** Those with the numbers in their text, by limits and numbers: plans that differ in anything else share the script. */
  private readonly inText = new Map<string, StraightLine>()
  private readonly ever = new Set<string>()

  constructor(
    private readonly isTestClock: boolean,
    /** Whether one clock is behind all keys, so that a reply may do without the time. */
    private readonly hasOneClock: boolean,
    /** Null where none is to be had at once: then every plan is asked by decide.lua. */
    private readonly sha1: ((text: string) => string) | null = sha1OfRuntime(),
  ) {}

  /** The script of a plan; null if decide.lua has to be asked. */
  of(plan: Plan): StraightLine | null {
    let line = this.byPlan.get(plan)
    if (line === undefined) {
      line = this.make(plan)
      this.byPlan.set(plan, line)
    }
    return line
  }

  /** The policies have changed: others may have their numbers in a text. */
  forget(): void {
    this.byPlan = new WeakMap()
    this.inText.clear()
  }

  private make({ limits, ends, shadowFrom }: Plan): StraightLine | null {
    if (this.sha1 === null || limits.length === 0 || limits.length > MOST_LIMITS) return null
    if (ends.length !== 1 || shadowFrom !== limits.length) return null
    const uses = limits.map(useOf)
    if (!uses.every(isKnown)) return null
    const key = JSON.stringify(
      uses.map(({ name, numbers, isCost, hasAlone }) => [name, numbers, isCost, hasAlone]),
    )
    const known = this.inText.get(key)
    // What is sent is of this plan's limits: two quotas of one number may have different calendars and terms.
    if (known !== undefined) return { ...known, sent: sentBy(uses) }
    const line = this.inText.size < MOST_TEXTS ? this.scriptOf(uses, true) : null
    if (line === null) return this.scriptOf(uses, false)
    this.inText.set(key, line)
    return line
  }

  private scriptOf(uses: readonly Use[], isInText: boolean): StraightLine | null {
    const hasAlone =
      isInText && this.hasOneClock && !this.isTestClock && uses.length === 1 && uses[0]?.hasAlone === true
    const text = textOf(uses, isInText, hasAlone, this.isTestClock)
    const sha = (this.sha1 as (text: string) => string)(text)
    if (!this.ever.has(sha) && this.ever.size >= MOST_TEXTS_EVER) return null
    this.ever.add(sha)
    const args = isInText ? [] : uses.flatMap(({ numbers }) => numbers.map(String))
    return { script: { sha, text, functionName: '' }, args, sent: sentBy(uses), hasAlone }
  }
}

/** SHA-1 without an import that would keep the store from a runtime that lacks it. */
function sha1OfRuntime(): ((text: string) => string) | null {
  const crypto = globalThis.process?.getBuiltinModule?.('node:crypto')
  return crypto === undefined ? null : text => crypto.createHash('sha1').update(text).digest('hex')
}

/** One limit of a sequence. */
interface Use {
  readonly name: string
  readonly kind: Kind
  readonly numbers: readonly (number | string)[]
  /** The last of them if it is sent with every call. */
  readonly sent: ((serverUs: number) => string) | null
  /** Whether it takes the cost of the request, and not always one unit. */
  readonly isCost: boolean
  readonly hasAlone: boolean
}

function sentBy(uses: readonly Use[]): StraightLine['sent'] {
  return uses.flatMap(({ sent }) => (sent === null ? [] : [sent]))
}

function useOf({ limit, countsRequests }: NamedLimit): Use {
  const { kind, numbers, sent, alone } = limit.algorithm.wire
  return {
    name: kind,
    kind: kinds[kind] as Kind,
    numbers: numbers(limit),
    sent: sent === undefined ? null : serverUs => sent(limit, serverUs),
    isCost: !countsRequests,
    hasAlone: alone?.isPossible(limit) === true,
  }
}

/** A number that is written into a text must be one: everything else in it is ours. */
function isKnown({ kind, numbers, sent }: Use): boolean {
  if (kind === undefined || kind.numbers.length !== numbers.length + (sent === null ? 0 : 1)) return false
  return kind.numbers.slice(0, numbers.length).every((name, index) => {
    const number = numbers[index]
    return name.endsWith('_text') ? /^[\d./e+-]+$/.test(String(number)) : Number.isFinite(number)
  })
}

function textOf(uses: readonly Use[], isInText: boolean, hasAlone: boolean, isTestClock: boolean): string {
  const written = uses.map((use, index) => new Writer(use, index + 1, isInText, uses.length === 1))
  const each = (section: (writer: Writer) => string): string => joined(written.map(section))
  const list = (section: (writer: Writer) => string, by: string): string => written.map(section).join(by)
  const loop = `for index = done + 1, size, ${uses.length} do
done = index
local ${list(({ n }) => `key_${n}`, ', ')} = ${list(({ n }) => `keys[index + ${n - 1}]`, ', ')}
${each(writer => writer.of('load'))}
if ${list(({ n }) => `left_${n} >= 0`, ' and ')} then
${each(writer => writer.of('charge'))}
${each(({ n, state }) => `keys[index + ${n - 1}] = odd_${n} and { 1, ${state} } or left_${n}`)}
else
${each(writer => writer.of('deny'))}
${each(({ n, state }) => `keys[index + ${n - 1}] = { 0, ${state} }`)}
end
end`
  const functions = functionsIn([...new Set(uses.map(({ kind }) => kind.functions))].join('\n'), loop)
  const code = [each(writer => writer.of('prepare')), functions, loop].join('\n')
  const costAt = namesOf(uses, isInText).length + 1
  // Everything is local to one function: a variable of its surroundings costs as much as thirty steps of arithmetic. When a key
  // cannot be read, it goes on behind it.
  return joined([
    `local done, now${hasAlone ? ', odd_ttl' : ''} = 0, nil`,
    isTestClock ? 'local clock = table.remove(ARGV)' : '',
    hasAlone
      ? `if #KEYS == 1 and not ARGV[${costAt + 1}] then\nlocal call, key_1, cost = redis.call, KEYS[1], (ARGV[${costAt}] or 1) + 0\n${argumentsOf(uses, isInText)}\n${written[0]?.of('alone')}\nend`
      : '',
    'local function decide()',
    'local call, keys, size = redis.call, KEYS, #KEYS',
    argumentsOf(uses, isInText),
    `local cost = (ARGV[${costAt}] or 1) + 0`,
    isTestClock ? `local grace_ms, shift_ms\n${testClock}` : SERVER_CLOCK,
    namesIn(code),
    withoutSwitches(code, isTestClock, hasAlone),
    'keys[size + 1] = now',
    'return keys',
    'end',
    `while true do
local is_done, reply = pcall(decide)
if is_done then
return reply
end
${problem}
local text = problem_of_key(reply)
if not text then
return failed(reply)
end
KEYS[done] = { text }
for index = done + 1, done + ${uses.length - 1} do
KEYS[index] = 0
end
done = done + ${uses.length - 1}
end`,
  ])
}

/** What a script without the clock of a test, or without `@alone`, need not look at. */
function withoutSwitches(code: string, isTestClock: boolean, hasAlone: boolean): string {
  const timed = isTestClock ? code : code.replace(/\b(grace|shift)_ms\b/g, '0')
  return hasAlone
    ? timed
    : timed.replaceAll(' and not odd_ttl', '').replaceAll('odd_ttl and odd_ttl > 0', 'false')
}

const BAD_STATE = 'HEADGATE_BAD_STATE the key holds something Headgate did not write'

const SERVER_CLOCK = `if not now then
local time = call('TIME')
now = time[1] * 1000000 + time[2]
end`

function joined(texts: readonly string[]): string {
  return texts.filter(text => text !== '').join('\n')
}

/** Writes the sections of one limit: `_N` becomes its place in the sequence, and its numbers are in place of their names. */
class Writer {
  readonly state: string

  constructor(
    private readonly use: Use,
    readonly n: number,
    private readonly isInText: boolean,
    private readonly isOnly: boolean,
  ) {
    this.state = this.write(use.kind.state)
  }

  of(section: 'load' | 'charge' | 'deny' | 'prepare' | 'alone'): string {
    // In a call of several checks no time to live is read, and `@alone` has read its own.
    return this.write(this.use.kind[section].replace(/if reads_ttl then\n.*\nend\n/, ''))
  }

  private write(text: string): string {
    const { kind, numbers, isCost } = this.use
    let written = text
      .replace(/\bcost_N\b/g, isCost ? 'cost' : '1')
      .replace(/\bis_only_limit\b/g, `${this.isOnly}`)
    if (this.isInText) {
      for (const [index, number] of numbers.entries()) {
        const name = kind.numbers[index]
        const text = typeof number === 'string' ? `'${number}'` : `${number}`
        written = written.replace(new RegExp(`\\b${name}_N\\b`, 'g'), text)
      }
    }
    return written.replace(/_N\b/g, `_${this.n}`)
  }
}

/** The numbers that come as arguments, in order: those that are not in the text, then those that are sent with every call. */
function namesOf(uses: readonly Use[], isInText: boolean): string[] {
  const named = uses.map(({ kind, numbers }, index) => ({
    fixed: kind.numbers.slice(0, numbers.length).map(name => `${name}_${index + 1}`),
    sent: kind.numbers.slice(numbers.length).map(name => `${name}_${index + 1}`),
  }))
  return [...(isInText ? [] : named.flatMap(({ fixed }) => fixed)), ...named.flatMap(({ sent }) => sent)]
}

function argumentsOf(uses: readonly Use[], isInText: boolean): string {
  return namesOf(uses, isInText)
    .map((name, index) => `local ${name} = ARGV[${index + 1}]${/_text_\d+$/.test(name) ? '' : ' + 0'}`)
    .join('\n')
}

/** Short names for what the code calls, and the times it reads. */
function namesIn(code: string): string {
  const uses = (name: string): boolean => new RegExp(`\\b${name}\\b`).test(code)
  const functions = Object.entries({
    find: 'string.find',
    format: 'string.format',
    ceil: 'math.ceil',
    floor: 'math.floor',
  }).filter(([name]) => new RegExp(`(?<![.\\w])${name}\\(`).test(code))
  const lines = functions.map(([name, path]) => `local ${name} = ${path}`)
  if (uses('BAD_STATE')) lines.push(`local BAD_STATE = '${BAD_STATE}'`)
  if (uses('now_ms')) lines.push('local now_ms = (now - now % 1000) / 1000')
  if (uses('now_text')) lines.push("local now_text = string.format('%016d', now)")
  return lines.join('\n')
}

/** Those functions of the algorithms that the code calls, or that such a function calls. */
function functionsIn(functions: string, code: string): string {
  let called = code
  const found = functions.split(/\n(?=local function )/).filter(text => text !== '')
  const kept = new Set<string>()
  for (let before = -1; before !== kept.size; ) {
    before = kept.size
    for (const text of found) {
      const name = /^local function (\w+)/.exec(text)?.[1]
      if (kept.has(text) || !new RegExp(`\\b${name}\\(`).test(called)) continue
      kept.add(text)
      called += text
    }
  }
  return found.filter(text => kept.has(text)).join('\n')
}
