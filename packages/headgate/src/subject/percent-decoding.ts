/** Matches the UTF-8 escapes of one character. `decodeURIComponent` throws at any other `%`. */
const CHARACTERS = new RegExp(
  ['%[0-7]H', '%(?:C[2-9A-F]|DH)T', '%(?:E0%[AB]H|E[1-9A-CEF]T|ED%[89]H)T', '%(?:F0%[9AB]H|F[1-3]T|F4%8H)TT']
    .join('|')
    .replaceAll('T', '%[89AB]H')
    .replaceAll('H', '[0-9A-F]'),
  'gi',
)

/**
 * Decodes as `decodeURIComponent` does, but returns null where that throws. Throwing and catching an error
 * takes as long as decoding a thousand characters, and a request may contain thousands of malformed parts.
 */
export function percentDecoded(text: string): string | null {
  if (!text.includes('%')) return text
  return text.replace(CHARACTERS, '').includes('%') ? null : decodeURIComponent(text)
}
