/** Rules that limit the tokens of a model: reserved by the gateway, settled by what the answer says it took. */
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { createLimiter, type RuleLimiter, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MODEL_ANSWERS, type ModelAnswer } from './support/model-answers.js'
import { startGateway, type TestGateway } from './support/test-gateway.js'

const INPUT = 1_000_000
const OUTPUT = 500_000
const CALLS = 100_000
/** For a machine that has more to do. */
const PATIENT = { timeout: 20_000 }

const config = defineConfig({
  policies: {
    calls: slidingWindowLog({ limit: CALLS, window: '1h' }),
    prompt: slidingWindowLog({ limit: INPUT, window: '1h' }),
    answer: slidingWindowLog({ limit: OUTPUT, window: '1h' }),
    both: slidingWindowLog({ limit: 10_000, window: '1h' }),
  },
  default: { policy: 'calls' },
  rules: [
    {
      name: 'model',
      match: { method: 'POST', path: '/v1/*' },
      policy: 'calls',
      tokens: {
        input: { policy: 'prompt', reserve: 700 },
        output: {
          policy: 'answer',
          reserve: 2_000,
          from: ['max_tokens', 'max_completion_tokens', 'generationConfig.maxOutputTokens'],
        },
      },
    },
    {
      name: 'total',
      match: { method: 'POST', path: '/total/*' },
      policy: 'calls',
      tokens: { total: { policy: 'both', reserve: 900 } },
    },
  ],
})

type Answer = (req: IncomingMessage, res: ServerResponse, body: Buffer) => void

let answer: Answer = (_req, res) => res.end()
let upstream: Server
let gateway: TestGateway
let limiter: RuleLimiter
const tokens: Record<string, number> = {}
const estimates: string[] = []
const subject = 'ip:127.0.0.1'

beforeAll(async () => {
  upstream = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', chunk => chunks.push(chunk))
    req.on('end', () => answer(req, res, Buffer.concat(chunks)))
  })
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  const { port } = upstream.address() as AddressInfo
  limiter = createLimiter({ config })
  gateway = await startGateway(`http://127.0.0.1:${port}`, {
    config,
    limiter,
    upstreamTimeoutMs: 3_000,
    tokens: {
      onTokens: (meter, count) => {
        tokens[meter] = (tokens[meter] ?? 0) + count
      },
      onEstimate: (meter, reason) => estimates.push(`${meter} ${reason}`),
    },
  })
})

afterAll(async () => {
  await gateway.close()
  upstream.closeAllConnections()
  upstream.close()
})

beforeEach(async () => {
  for (const meter of Object.keys(tokens)) delete tokens[meter]
  estimates.length = 0
  for (const policy of ['calls', 'prompt', 'answer', 'both'] as const)
    await limiter.reset(subject, { policy })
})

const used = async (policy: 'prompt' | 'answer' | 'both' | 'calls') => {
  const { limit, remaining } = await limiter.peek(subject, { policy })
  return limit - remaining
}

const ask = (body: string | Buffer = '{}', headers: Record<string, string> = {}, path = '/v1/chat') =>
  fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: body as string,
  })

const settled = async (input: number, output: number) => {
  await expect.poll(() => tokens, PATIENT).toEqual({ input, output })
  await expect.poll(() => used('prompt'), PATIENT).toBe(input)
  await expect.poll(() => used('answer'), PATIENT).toBe(output)
}

const answerWith = ({ contentType, body }: Pick<ModelAnswer, 'contentType' | 'body'>): Answer => {
  return (_req, res) => res.writeHead(200, { 'Content-Type': contentType }).end(body)
}

const events = MODEL_ANSWERS.find(({ name }) => name === 'OpenAI, events') as ModelAnswer
const json = MODEL_ANSWERS.find(({ name }) => name === 'OpenAI, JSON') as ModelAnswer

describe('the answer', () => {
  it.each(MODEL_ANSWERS)(
    '$name: passes byte for byte, one byte at a time, and settles what it took',
    async given => {
      const bytes = Buffer.from(given.body)
      answer = (_req, res) => {
        res.writeHead(200, { 'Content-Type': given.contentType })
        res.socket?.setNoDelay()
        let index = 0
        const next = () => {
          if (index === bytes.length) return void res.end()
          res.write(bytes.subarray(index, ++index))
          setImmediate(next)
        }
        next()
      }
      const response = await ask()
      expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true)
      await settled(given.input, given.output)
      expect(estimates).toEqual(['output field-missing'])
    },
  )

  it('a stream cut at any byte is settled the same', async () => {
    const bytes = Buffer.from(events.body)
    for (let cut = 1; cut < bytes.length; cut++) {
      answer = (_req, res) => {
        res.writeHead(200, { 'Content-Type': events.contentType })
        res.write(bytes.subarray(0, cut), () => setImmediate(() => res.end(bytes.subarray(cut))))
      }
      const response = await ask()
      expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true)
    }
    const times = bytes.length - 1
    await settled(times * events.input, times * events.output)
  })

  it('passes before it is complete', async () => {
    const [first = '', ...rest] = events.body.split(/(?<=\n\n)/)
    let goOn = () => {}
    answer = (_req, res) => {
      res.writeHead(200, { 'Content-Type': events.contentType })
      res.write(first)
      goOn = () => res.end(rest.join(''))
    }
    const response = await ask()
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    const { value = Buffer.of() } = await reader.read()
    expect(Buffer.from(value).toString()).toBe(first)
    expect(await used('answer')).toBe(2_000)
    goOn()
    while (!(await reader.read()).done);
    await settled(events.input, events.output)
  })

  it.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
  ])('in %s is decoded beside the bytes that pass', async (encoding, compress) => {
    for (const given of [events, json]) {
      const bytes = compress(Buffer.from(given.body))
      answer = (_req, res) => {
        res.writeHead(200, { 'Content-Type': given.contentType, 'Content-Encoding': encoding })
        for (const byte of bytes) res.write(Uint8Array.of(byte))
        res.end()
      }
      const passed = await new Promise<Buffer>((resolve, reject) => {
        const sent = request(`${gateway.url}/v1/chat`, { method: 'POST' }, res => {
          const chunks: Buffer[] = []
          res.on('data', chunk => chunks.push(chunk)).on('end', () => resolve(Buffer.concat(chunks)))
        })
        sent.on('error', reject).end()
      })
      expect(passed.equals(bytes)).toBe(true)
    }
    await settled(events.input + json.input, events.output + json.output)
  })

  it('that decodes to far more than was sent passes, no faster than it is read', async () => {
    const text = {
      choices: [{ message: { content: 'x'.repeat(8_000_000) } }],
      usage: { prompt_tokens: 4, completion_tokens: 5 },
    }
    const bytes = gzipSync(JSON.stringify(text))
    answer = (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }).end(bytes)
    }
    const response = await ask()
    expect((await response.text()).length).toBe(JSON.stringify(text).length)
    await settled(4, 5)
  })

  it('in many compressed pieces leaves nothing behind for each', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    const bytes = gzipSync(JSON.stringify({ text: randomBytes(2_000_000).toString('base64') }))
    answer = (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }).end(bytes)
    }
    await (await ask()).arrayBuffer()
    await settled(700, 2_000)
    process.off('warning', onWarning)
    expect(warnings).toEqual([])
  })

  it.each([
    ['an encoding that is not known', { 'Content-Encoding': 'zip' }, json.body, 'answer-unreadable'],
    ['bytes that are not in the encoding', { 'Content-Encoding': 'gzip' }, json.body, 'answer-unreadable'],
    ['no usage', {}, '{"id":1}', 'usage-missing'],
    ['another type', { 'Content-Type': 'text/plain' }, 'hello', 'usage-missing'],
    [
      'counts that are no numbers',
      {},
      '{"usage":{"prompt_tokens":"1","completion_tokens":-2}}',
      'usage-invalid',
    ],
  ])('with %s passes, and the estimates stand', async (_name, headers, body, reason) => {
    answer = (_req, res) => res.writeHead(200, { 'Content-Type': 'application/json', ...headers }).end(body)
    await new Promise<void>((resolve, reject) => {
      const sent = request(`${gateway.url}/v1/chat`, { method: 'POST' }, res =>
        res.resume().on('end', resolve),
      )
      sent.on('error', reject).end()
    })
    await settled(700, 2_000)
    expect(estimates).toEqual(['output body-unreadable', `input ${reason}`, `output ${reason}`])
  })

  it('that rejects the call costs nothing', async () => {
    answer = (_req, res) => res.writeHead(429, { 'Content-Type': 'application/json' }).end('{"error":{}}')
    expect((await ask()).status).toBe(429)
    await settled(0, 0)
  })

  it('whose stream tells no usage is estimated by its length', async () => {
    const chunk = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`
    answer = answerWith({
      contentType: 'text/event-stream',
      body: `${chunk('12345678')}${chunk('1234')}data: [DONE]\n\n`,
    })
    await (await ask()).text()
    await settled(700, 3)
    expect(estimates).toEqual(['output field-missing', 'input usage-missing', 'output streamed'])
  })
})

describe('an exchange that breaks off', () => {
  const anthropic = MODEL_ANSWERS.find(({ name }) => name === 'Anthropic, events') as ModelAnswer

  it('because the client leaves: what was streamed is settled, and the upstream told', async () => {
    const begun =
      'data: {"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}\n\n'
    const delta = `data: ${JSON.stringify({ delta: { type: 'text_delta', text: 'x'.repeat(40) } })}\n\n`
    const closed = new Promise<void>(resolve => {
      answer = (_req, res) => {
        res.writeHead(200, { 'Content-Type': anthropic.contentType })
        res.write(begun + delta)
        res.on('close', resolve)
      }
    })
    const controller = new AbortController()
    const response = await fetch(`${gateway.url}/v1/chat`, { method: 'POST', signal: controller.signal })
    await response.body?.getReader().read()
    controller.abort()
    await closed
    await settled(25, 10)
    expect(estimates).toContain('output streamed')
  })

  it('because the upstream dies: the same', async () => {
    answer = (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      res.write('data: {"choices":[{"delta":{"content":"12345678"}}]}\n\n', () => res.destroy())
    }
    const response = await ask()
    await expect(response.text()).rejects.toThrow()
    await settled(700, 2)
    expect(estimates).toEqual(['output field-missing', 'input broken-off', 'output streamed'])
  })

  it('before there is an answer: the estimates stand', async () => {
    answer = () => {}
    expect((await ask('{"max_tokens":300}')).status).toBe(504)
    await settled(700, 300)
    expect(estimates).toEqual(['input no-answer', 'output no-answer'])
  })

  it('because the client leaves before its body is complete: nothing is reserved', async () => {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
    const head =
      'POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{'
    socket.write(head)
    await expect.poll(() => used('calls'), PATIENT).toBe(1)
    socket.destroy()
    answer = answerWith(json)
    expect((await ask('{}')).status).toBe(200)
    await settled(json.input, json.output)
  })

  it('because no upstream is there: it costs nothing', async () => {
    const dead = await startGateway('http://127.0.0.1:1', { config, limiter })
    const response = await fetch(`${dead.url}/v1/chat`, { method: 'POST' })
    expect(response.status).toBe(502)
    await expect.poll(() => used('answer'), PATIENT).toBe(0)
    await dead.close()
  })

  it('of a meter of both: the prompt by its length, and what was streamed', async () => {
    answer = (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      res.write('data: {"choices":[{"delta":{"content":"12345678"}}]}\n\n', () => res.destroy())
    }
    const response = await ask('x'.repeat(40), {}, '/total/chat')
    await expect(response.text()).rejects.toThrow()
    await expect.poll(() => used('both'), PATIENT).toBe(12)
  })
})

describe('what a request reserves', () => {
  const reservedBy = async (body: string | Buffer, headers: Record<string, string> = {}) => {
    let seen: Buffer = Buffer.alloc(0)
    let reserved = 0
    const before = await used('answer')
    answer = async (_req, res, got) => {
      seen = got
      reserved = (await used('answer')) - before
      answerWith(json)(_req, res, got)
    }
    expect((await ask(body, headers)).status).toBe(200)
    expect(seen.equals(Buffer.from(body))).toBe(true)
    await expect.poll(() => used('answer'), PATIENT).toBe(before + json.output)
    return reserved
  }
  const padded = (bytes: number) => {
    const body = JSON.stringify({ prompt: '', max_tokens: 50 })
    return body.replace('""', `"${'x'.repeat(bytes - body.length)}"`)
  }

  it('is what its body asks for, and the body passes byte for byte', async () => {
    expect(await reservedBy('{ "max_tokens" : 123, "messages": ["\\u00e9"] }')).toBe(123)
    expect(await reservedBy('{"generationConfig":{"maxOutputTokens":77}}')).toBe(77)
    expect(await reservedBy('{"max_tokens":10,"max_completion_tokens":400}')).toBe(400)
    expect(await reservedBy(padded(256 * 1_024))).toBe(50)
    expect(estimates).toEqual([])
  })

  it('is read from a body that comes byte by byte, which is gathered in one piece', async () => {
    const body = '{"max_tokens":50}'
    let pieces = 0
    const counting = createServer((req, res) => {
      req.on('data', () => pieces++).on('end', () => res.end())
    })
    await new Promise<void>(resolve => counting.listen(0, '127.0.0.1', resolve))
    const { port } = counting.address() as AddressInfo
    const before = await startGateway(`http://127.0.0.1:${port}`, { config, limiter })
    const chunked = [...body].map(byte => `1\r\n${byte}\r\n`).join('')
    const socket = connect(Number(new URL(before.url).port), '127.0.0.1')
    const head =
      'POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked'
    socket.write(`${head}\r\n\r\n${chunked}0\r\n\r\n`)
    await new Promise(resolve => socket.once('data', resolve))
    expect(pieces).toBe(1)
    socket.destroy()
    await before.close()
    counting.close()
  })

  it.each([
    ['a missing field', '{"messages":[]}', {}, 'field-missing'],
    ['text', '{"max_tokens":"12"}', {}, 'field-invalid'],
    ['a fraction', '{"max_tokens":1.5}', {}, 'field-invalid'],
    ['zero', '{"max_tokens":0}', {}, 'field-invalid'],
    ['no JSON', '{"max_tokens":', {}, 'body-unreadable'],
    ['a list', '[]', {}, 'field-missing'],
    ['null', 'null', {}, 'body-unreadable'],
    ['the name of a method', '{"max_tokens":{"valueOf":3}}', {}, 'field-invalid'],
    ['a form', 'max_tokens=1', { 'Content-Type': 'text/plain' }, 'body-unreadable'],
    ['a larger body', padded(256 * 1_024 + 1), {}, 'body-too-large'],
    ['a compressed body', gzipSync('{"max_tokens":1}'), { 'Content-Encoding': 'gzip' }, 'body-compressed'],
  ])('is what the rule says for %s, counted', async (_name, body, headers, reason) => {
    expect(await reservedBy(body, headers)).toBe(2_000)
    expect(estimates).toEqual([`output ${reason}`])
  })

  it('is what the body says, whatever type the client claims it has', async () => {
    expect(await reservedBy('{"max_tokens":12}', { 'Content-Type': 'text/plain' })).toBe(12)
    expect(estimates).toEqual([])
  })

  it('a body of unknown length is looked at as far as allowed, and passes whole', async () => {
    const body = Buffer.from(padded(700_000))
    let seen: Buffer = Buffer.alloc(0)
    answer = (req, res, got) => {
      seen = got
      answerWith(json)(req, res, got)
    }
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < body.length; at += 10_000) controller.enqueue(body.subarray(at, at + 10_000))
        controller.close()
      },
    })
    const headers = { 'Content-Type': 'application/json' }
    const options = { method: 'POST', headers, body: stream, duplex: 'half' } as RequestInit
    expect((await fetch(`${gateway.url}/v1/chat`, options)).status).toBe(200)
    expect(seen.equals(body)).toBe(true)
    await settled(json.input, json.output)
    expect(estimates).toEqual(['output body-too-large'])
  })

  it('a client that waits for leave to send its body gets it once', async () => {
    answer = answerWith(json)
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1')
      const body = '{"max_tokens":5}'
      let got = ''
      socket.on('data', chunk => {
        if (got === '') socket.write(body)
        got += chunk
      })
      socket.on('end', () => resolve(got)).on('error', reject)
      socket.write(
        `POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`,
      )
    })
    expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(2)
    expect(text).toContain('HTTP/1.1 100 Continue')
    expect(text).toContain('HTTP/1.1 200 OK')
    await settled(json.input, json.output)
  })

  it('an answer that comes before the body is complete passes', async () => {
    const early = createServer((_req, res) => res.writeHead(413).end('too much'))
    await new Promise<void>(resolve => early.listen(0, '127.0.0.1', resolve))
    const front = await startGateway(`http://127.0.0.1:${(early.address() as AddressInfo).port}`, {
      config,
      limiter,
    })
    const response = await fetch(`${front.url}/v1/chat`, { method: 'POST', body: padded(300_000) })
    expect([response.status, await response.text()]).toEqual([413, 'too much'])
    await expect.poll(() => used('answer'), PATIENT).toBe(0)
    await front.close()
    early.close()
  })
})

describe('limits', () => {
  it('a request beyond them is denied with the meter named, reaches no upstream, and costs nothing', async () => {
    let reached = 0
    answer = (req, res, body) => {
      reached++
      answerWith(json)(req, res, body)
    }
    const denied = await ask(`{"max_tokens":${OUTPUT + 1}}`)
    expect(denied.status).toBe(429)
    expect(await denied.json()).toMatchObject({ 'violated-policies': [expect.stringContaining('answer')] })
    expect(reached).toBe(0)
    await expect.poll(() => used('calls'), PATIENT).toBe(0)
    expect([await used('prompt'), await used('answer')]).toEqual([0, 0])
  })

  it('parallel calls never reserve more than there is, and end with exactly what was taken', async () => {
    const waiting: (() => void)[] = []
    answer = (req, res, body) => waiting.push(() => answerWith(json)(req, res, body))
    let denied = 0
    const calls = Array.from({ length: 40 }, async () => {
      const { status } = await ask('{"max_tokens":20000}')
      if (status === 429) denied++
      return status
    })
    // 25 × 20,000 is the limit.
    await expect.poll(() => [waiting.length, denied], PATIENT).toEqual([25, 15])
    expect(await used('answer')).toBe(OUTPUT)
    for (const goOn of waiting) goOn()
    await Promise.all(calls)
    await settled(25 * json.input, 25 * json.output)
  })

  it('its rate limits are asked before any of a body is read', async () => {
    const strict = defineConfig({
      policies: {
        none: slidingWindowLog({ limit: 0, window: '1h' }),
        answer: slidingWindowLog({ limit: 100, window: '1h' }),
      },
      default: { policy: 'none' },
      rules: [
        {
          match: { path: '/v1/*' },
          policy: 'none',
          tokens: { output: { policy: 'answer', reserve: 1, from: 'max_tokens' } },
        },
      ],
    })
    const front = await startGateway('http://127.0.0.1:1', { config: strict })
    const socket = connect(Number(new URL(front.url).port), '127.0.0.1')
    const status = new Promise<string>((resolve, reject) => {
      socket.once('data', chunk => resolve(String(chunk).slice(0, 12))).once('error', reject)
    })
    socket.write(
      'POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n',
    )
    expect(await status).toBe('HTTP/1.1 429')
    socket.destroy()
    await front.close()
  })

  it('a body that comes too slowly is given up, and reserves nothing', async () => {
    const slow = { minBodyRate: 1_000, bodyGraceMs: 500 }
    const front = await startGateway('http://127.0.0.1:1', { config, limiter, bounds: slow })
    const socket = connect(Number(new URL(front.url).port), '127.0.0.1')
    const status = new Promise<string>((resolve, reject) => {
      socket.once('data', chunk => resolve(String(chunk).slice(0, 12))).once('error', reject)
    })
    socket.write(
      'POST /v1/chat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
    )
    expect(await status).toBe('HTTP/1.1 408')
    socket.destroy()
    expect(await used('answer')).toBe(0)
    await front.close()
  })

  it('what an answer took beyond its estimate is charged all the same', async () => {
    answer = answerWith({
      contentType: 'application/json',
      body: '{"usage":{"input_tokens":9000,"output_tokens":8000}}',
    })
    await ask('{"max_tokens":10}')
    await settled(9_000, 8_000)
  })

  it('explain says what is reserved', () => {
    const { text, levels } = limiter.explain({ subject, method: 'POST', path: '/v1/chat' })
    expect(levels[0]?.tokens).toHaveLength(2)
    expect(text).toContain('input tokens, policy prompt: reserves 700 of ')
    expect(text).toContain(
      'max_tokens or max_completion_tokens or generationConfig.maxOutputTokens of the body, or else 2000',
    )
  })
})
