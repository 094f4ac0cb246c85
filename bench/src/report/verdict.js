/**
 * Says in the last line how many targets were missed; with `strict` the exit code says it too.
 *
 * @param {readonly { met: boolean }[]} targets
 * @param {boolean} strict
 */
export function sayVerdict(targets, strict) {
  const missed = targets.filter(target => !target.met).length
  process.stdout.write(missed === 0 ? 'Every target was met.\n' : `${missed} targets were missed.\n`)
  if (strict && missed > 0) process.exitCode = 1
}
