/**
 * Parses the common and combined formats of nginx and Apache by looking for their separators: a regular expression
 * takes several times as long, and a log has millions of lines.
 *
 *   192.0.2.1 - ada [17/Nov/2026:09:00:00 +0000] "GET /search?q=1 HTTP/1.1" 200 512 "-" "curl/8"
 */
import { addressSubject, type LoggedRequest, type ReadLine, readTime } from './logged-request.js'

/** Lists of subjects, which most lines share. Cleared when full: those in use are back at once. */
const MAX_REMEMBERED = 100_000

/**
 * Creates a parser. It remembers the last time it parsed, because a busy log repeats the same second thousands of
 * times, and the callers, because parsing an address takes longer than the rest of a line.
 */
export function combinedLog(): ReadLine {
  const remembered = new Map<string, readonly string[] | null>()
  function subjectsOf(callerText: string): readonly string[] | null {
    let subjects = remembered.get(callerText)
    if (subjects === undefined) {
      if (remembered.size >= MAX_REMEMBERED) remembered.clear()
      // A substring keeps the whole text in memory, so a copy is remembered.
      const own = Buffer.from(callerText).toString()
      subjects = readSubjects(own)
      remembered.set(own, subjects)
    }
    return subjects
  }
  let lastTime = ''
  let lastAtMs = Number.NaN
  return line => {
    const open = line.indexOf('[')
    const close = line.indexOf(']', open)
    if (open < 0 || close < 0) return null
    const time = line.slice(open + 1, close)
    if (time !== lastTime) {
      lastTime = time
      lastAtMs = readTime(time)
    }
    const subjects = subjectsOf(line.slice(0, open))
    const request = quotedAfter(line, close)
    if (Number.isNaN(lastAtMs) || subjects === null || request === null) return null
    return { atMs: lastAtMs, subjects, ...requestLine(request) }
  }
}

/** `192.0.2.1 - ada `: the address, and before it the user's name, if there is one. */
function readSubjects(text: string): readonly string[] | null {
  const afterAddress = text.indexOf(' ')
  const afterIdent = text.indexOf(' ', afterAddress + 1)
  if (afterAddress < 0 || afterIdent < 0) return null
  const address = addressSubject(text.slice(0, afterAddress))
  if (address === null) return null
  const user = text.slice(afterIdent + 1).trim()
  return user === '' || user === '-' ? [address] : [`user:${user}`, address]
}

function quotedAfter(line: string, from: number): string | null {
  const open = line.indexOf('"', from)
  const close = line.indexOf('"', open + 1)
  return open < 0 || close < 0 ? null : line.slice(open + 1, close)
}

/** `GET /path HTTP/1.1`, of which the last part may be missing. */
export function requestLine(text: string): Pick<LoggedRequest, 'method' | 'path'> {
  const afterMethod = text.indexOf(' ')
  if (afterMethod < 0) return {}
  const afterPath = text.lastIndexOf(' ')
  const path = text.slice(afterMethod + 1, afterPath > afterMethod ? afterPath : undefined)
  return { method: text.slice(0, afterMethod), path }
}
