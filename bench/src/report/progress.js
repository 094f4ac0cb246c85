/** Shows progress: on a terminal in one changing line, elsewhere in a line for each part. */
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
