/**
 * Whether a subject is among the limited percentage. The choice is stable, so that raising the percentage only adds
 * subjects.
 */
export function isInShare(subject: string, percent: number): boolean {
  return percent >= 100 || placeOf(subject) < percent
}

/** Maps a subject to a fixed place between 0 and 100. */
function placeOf(subject: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < subject.length; index++) {
    hash = Math.imul(hash ^ subject.charCodeAt(index), 0x01000193)
  }
  // So far the last characters of an id have reached only the low bits; this spreads them over all.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32) * 100
}
