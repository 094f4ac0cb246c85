/** Says what is being measured: on a terminal in one line that changes, elsewhere a line for each part. */
export function createProgress(stream = process.stderr) {
  let part = ''
  return {
    /** @param {string} title */
    begin(title) {
      part = title
      if (!stream.isTTY) stream.write(`${title}\n`)
    },
    /** @param {string} step */
    step(step) {
      if (stream.isTTY) stream.write(`\r\x1b[K${part}: ${step}`)
    },
    end() {
      if (stream.isTTY) stream.write('\r\x1b[K')
    },
  }
}
