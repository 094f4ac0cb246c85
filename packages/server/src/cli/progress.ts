/** Shows the progress of long work on the last line of a terminal; shows nothing if nobody watches. */
export interface Progress {
  show(state: ProgressState): void
  /** Removes the line. */
  done(): void
}

interface ProgressState {
  /** From 0 to 1; null if the end is unknown. */
  readonly doneShare: number | null
  readonly requests: number
}

interface Screen {
  readonly isTTY?: boolean
  write(text: string): unknown
}

const EVERY_MS = 100
const WIDTH = 30
const CLEAR_LINE = '\r\u001b[K'

export function createProgress(screen: Screen, now: () => number = () => performance.now()): Progress {
  const began = now()
  let shownAt = Number.NEGATIVE_INFINITY
  return {
    show({ doneShare, requests }) {
      if (!screen.isTTY || now() - shownAt < EVERY_MS) return
      shownAt = now()
      const perSecond = Math.round((requests * 1000) / Math.max(1, now() - began))
      const speed = `${requests.toLocaleString('en')} requests, ${perSecond.toLocaleString('en')} a second`
      screen.write(`${CLEAR_LINE}${doneShare === null ? '' : `${bar(doneShare)} `}${speed}`)
    },
    done() {
      if (screen.isTTY && shownAt !== Number.NEGATIVE_INFINITY) screen.write(CLEAR_LINE)
      shownAt = Number.NEGATIVE_INFINITY
    },
  }
}

function bar(share: number): string {
  const filled = Math.round(Math.min(1, share) * WIDTH)
  return `${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${Math.round(share * 100)} %`
}
