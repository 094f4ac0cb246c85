/** Answers of models as providers write them, and what they took. */

export interface ModelAnswer {
  readonly name: string
  readonly contentType: string
  readonly body: string
  readonly input: number
  readonly output: number
}

/** Text that a careless reader would take for the usage. */
const DECEPTIVE =
  '"}],"usage":{"prompt_tokens":1,"completion_tokens":1}} \\"usage\\" data: {"usage": 雨\u{1f327}'

const events = (...list: readonly (object | string | readonly [string, object])[]): string =>
  list
    .map(one => {
      if (typeof one === 'string') return `data: ${one}\n\n`
      return Array.isArray(one)
        ? `event: ${one[0]}\ndata: ${JSON.stringify(one[1])}\n\n`
        : `data: ${JSON.stringify(one)}\n\n`
    })
    .join('')

const JSON_TYPE = 'application/json'
const EVENTS_TYPE = 'text/event-stream; charset=utf-8'

const chunkOf = (delta: object) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason: null }],
  usage: null,
})

export const MODEL_ANSWERS: readonly ModelAnswer[] = [
  {
    name: 'OpenAI, JSON',
    contentType: JSON_TYPE,
    input: 19,
    output: 10,
    body: JSON.stringify(
      {
        id: 'chatcmpl-1',
        choices: [
          { index: 0, message: { role: 'assistant', content: DECEPTIVE, usage: { prompt_tokens: 5 } } },
        ],
        usage: {
          prompt_tokens: 19,
          completion_tokens: 10,
          total_tokens: 29,
          prompt_tokens_details: { cached_tokens: 7, prompt_tokens: 99 },
        },
        service_tier: 'default',
      },
      null,
      2,
    ),
  },
  {
    name: 'OpenAI, events',
    contentType: EVENTS_TYPE,
    input: 9,
    output: 12,
    body: events(
      chunkOf({ role: 'assistant', content: '' }),
      chunkOf({ content: DECEPTIVE }),
      { id: 'c', choices: [], usage: { prompt_tokens: 9, completion_tokens: 12, total_tokens: 21 } },
      '[DONE]',
    ),
  },
  {
    name: 'OpenAI Responses, events',
    contentType: EVENTS_TYPE,
    input: 37,
    output: 11,
    body: events(
      ['response.created', { type: 'response.created', response: { id: 'r', usage: null } }],
      ['response.output_text.delta', { type: 'response.output_text.delta', delta: DECEPTIVE }],
      [
        'response.completed',
        {
          type: 'response.completed',
          response: {
            output: [{ content: [{ text: DECEPTIVE }] }],
            usage: {
              input_tokens: 37,
              output_tokens: 11,
              output_tokens_details: { reasoning_tokens: 3 },
              total_tokens: 48,
            },
          },
        },
      ],
    ),
  },
  {
    name: 'Anthropic, JSON',
    contentType: JSON_TYPE,
    input: 2_095 + 100 + 50,
    output: 503,
    body: JSON.stringify({
      id: 'msg',
      content: [{ type: 'text', text: DECEPTIVE }],
      usage: {
        input_tokens: 2_095,
        cache_creation_input_tokens: 100,
        cache_read_input_tokens: 50,
        output_tokens: 503,
      },
    }),
  },
  {
    name: 'Anthropic, events',
    contentType: EVENTS_TYPE,
    input: 25,
    output: 15,
    body: events(
      [
        'message_start',
        {
          type: 'message_start',
          message: { id: 'm', content: [], usage: { input_tokens: 25, output_tokens: 1 } },
        },
      ],
      [
        'content_block_start',
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      ],
      ['ping', { type: 'ping' }],
      [
        'content_block_delta',
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: DECEPTIVE } },
      ],
      [
        'message_delta',
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 15 } },
      ],
      ['message_stop', { type: 'message_stop' }],
    ).replaceAll('\n', '\r\n'),
  },
  {
    name: 'Gemini, JSON',
    contentType: 'application/json; charset=UTF-8',
    input: 8,
    output: 38 + 20,
    body: JSON.stringify({
      candidates: [{ content: { parts: [{ text: DECEPTIVE }], role: 'model' } }],
      usageMetadata: {
        promptTokenCount: 8,
        candidatesTokenCount: 38,
        thoughtsTokenCount: 20,
        totalTokenCount: 66,
      },
    }),
  },
  {
    name: 'Gemini, events',
    contentType: EVENTS_TYPE,
    input: 8,
    output: 40,
    body: events(
      {
        candidates: [{ content: { parts: [{ text: DECEPTIVE }] } }],
        usageMetadata: { promptTokenCount: 8, candidatesTokenCount: 4, totalTokenCount: 12 },
      },
      {
        candidates: [{ content: { parts: [{ text: 'more' }] } }],
        usageMetadata: { promptTokenCount: 8, candidatesTokenCount: 40, totalTokenCount: 48 },
      },
    ),
  },
  {
    name: 'Gemini, a list',
    contentType: JSON_TYPE,
    input: 8,
    output: 40,
    body: JSON.stringify(
      [
        {
          candidates: [{ content: { parts: [{ text: DECEPTIVE }] } }],
          usageMetadata: { promptTokenCount: 8, totalTokenCount: 8 },
        },
        {
          candidates: [],
          usageMetadata: { promptTokenCount: 8, candidatesTokenCount: 40, totalTokenCount: 48 },
        },
      ],
      null,
      1,
    ),
  },
  {
    name: 'OpenAI embeddings',
    contentType: JSON_TYPE,
    input: 5,
    output: 0,
    body: JSON.stringify({
      data: [{ embedding: [0.25, -1e-3] }],
      usage: { prompt_tokens: 5, total_tokens: 5 },
    }),
  },
]
