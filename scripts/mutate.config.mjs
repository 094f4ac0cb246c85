// vitest as ever, with one line of one source changed: the one that HEADGATE_MUTATION names.

import { defineConfig } from 'vitest/config'

const mutation = process.env.HEADGATE_MUTATION && JSON.parse(process.env.HEADGATE_MUTATION)

export default defineConfig({
  plugins: [
    {
      name: 'one-mutation',
      enforce: 'pre',
      transform(code, id) {
        if (!mutation || !id.endsWith(`/${mutation.file}`)) return null
        const lines = code.split('\n')
        if (lines[mutation.line - 1] !== mutation.before) throw new Error(`${id} is not what was changed`)
        lines[mutation.line - 1] = mutation.after
        return lines.join('\n')
      },
    },
  ],
  test: {
    // Time decides nothing here: a slow machine must not pass for a change that was noticed.
    testTimeout: 300_000,
    include: ['packages/*/{src,test}/**/*.test.ts'],
  },
})
