import type { Alert } from './alert-rules.js'

export interface WebhookOptions {
  readonly url: string
  readonly log: (line: string) => void
  /** Schedules another try in the background. */
  readonly after: (ms: number, work: () => void) => void
  readonly fetch: typeof fetch
}

const TRIES = 5
const FIRST_PAUSE_MS = 1_000
const TIMEOUT_MS = 5_000
/** Alerts that wait for an unreachable receiver; there are six kinds. */
const MAX_WAITING = 20

/** Sends alerts to a webhook, in the JSON that Slack and similar receivers accept. Each once, with retries. */
export function createWebhook({ url, log, after, fetch }: WebhookOptions): (alert: Alert) => void {
  let waiting = 0

  async function send(alert: Alert, attempt: number): Promise<void> {
    const problem = await post(alert)
    if (problem === null) {
      waiting--
      return
    }
    if (attempt < TRIES) {
      after(FIRST_PAUSE_MS * 2 ** (attempt - 1), () => void send(alert, attempt + 1))
      return
    }
    waiting--
    // The address may itself be a secret, so it is not repeated.
    log(`alerts: ${alert.name} was not delivered to the webhook in ${TRIES} tries: ${problem}`)
  }

  /** Returns why it failed, or null. */
  async function post(alert: Alert): Promise<string | null> {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(messageOf(alert)),
        signal: AbortSignal.timeout(TIMEOUT_MS),
        redirect: 'error',
      })
      await response.body?.cancel()
      return response.ok ? null : `it answered ${response.status}`
    } catch (error) {
      return error instanceof Error && error.name === 'TimeoutError'
        ? 'it did not answer'
        : 'it cannot be reached'
    }
  }

  return alert => {
    if (waiting >= MAX_WAITING) return
    waiting++
    void send(alert, 1)
  }
}

/** Formats a message as Slack shows it: a line, and the stats beside a coloured bar. */
function messageOf({ name, state, text, value, threshold, sinceMs }: Alert) {
  const head = state === 'resolved' ? 'Resolved' : 'Firing'
  return {
    text: `${head}: Headgate ${name}: ${text}`,
    attachments: [
      {
        color: state === 'resolved' ? 'good' : 'danger',
        fields: [
          { title: 'alert', value: name, short: true },
          { title: 'state', value: state, short: true },
          { title: 'value', value: String(value), short: true },
          { title: 'threshold', value: String(threshold), short: true },
          { title: 'since', value: new Date(sinceMs).toISOString(), short: true },
        ],
      },
    ],
  }
}
