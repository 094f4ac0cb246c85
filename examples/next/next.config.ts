import { join } from 'node:path'
import type { NextConfig } from 'next'

const config: NextConfig = {
  // The folder that `headgate` is linked from; an app that has installed it needs no such line.
  turbopack: { root: join(import.meta.dirname, '../..') },
  rewrites: async () => [{ source: '/:locale(de|fr)/:path*', destination: '/:path*' }],
}

export default config
